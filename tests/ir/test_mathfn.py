"""The table of mathematical functions: every name of the language is there, types and arities hold."""

from __future__ import annotations

import pytest

from tileworkbench.errors import InternalError, LanguageError, ShapeError
from tileworkbench.ir.dtype import BFLOAT16, BOOL, DTYPES, FLOAT16, FLOAT32, FLOAT64, INT32, UINT32
from tileworkbench.ir.expr import Cast, Const, Var
from tileworkbench.ir.mathfn import MATH, math_call, math_fn

NAMES = [
    "exp",
    "exp2",
    "exp10",
    "log",
    "log2",
    "log10",
    "log1p",
    "expm1",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "sigmoid",
    "floor",
    "ceil",
    "trunc",
    "round",
    "nearbyint",
    "fmod",
    "atan2",
    "hypot",
    "copysign",
    "pow",
    "isnan",
    "isinf",
    "isfinite",
    "popcount",
    "clz",
    "fma",
    "__exp",
    "__exp2",
    "__exp10",
    "__log",
    "__log2",
    "__log10",
    "__sin",
    "__cos",
    "__tan",
    "fast_rcp",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_function_of_the_language_has_a_row(name):
    row = math_fn(name)
    assert row.name == name and row.arity in (1, 2, 3)
    assert row.mode in ("exact", "accurate", "approx") and row.kind in ("float", "fast", "test", "bits", "scale")


def test_modes_agree_with_the_stated_accuracy():
    for row in MATH.values():
        if row.mode == "exact":
            assert row.ulp32 in (0, None)
        elif row.mode == "accurate":
            assert 0 < row.ulp32 <= 8 and 0 < row.ulp64 <= 8
        else:
            assert row.note, row.name


@pytest.mark.parametrize(
    ("name", "operands", "result"),
    [
        ("exp2", (FLOAT16,), FLOAT16),
        ("exp2", (BFLOAT16,), BFLOAT16),
        ("sqrt", (INT32,), FLOAT32),
        ("pow", (FLOAT16, FLOAT32), FLOAT32),
        ("fma", (FLOAT64, FLOAT32, FLOAT32), FLOAT64),
        ("__exp", (FLOAT16,), FLOAT32),
        ("isnan", (FLOAT16,), BOOL),
        ("popcount", (UINT32,), INT32),
        ("clz", (DTYPES["uint64"],), INT32),
        ("ldexp", (FLOAT16, DTYPES["int8"]), FLOAT16),
    ],
)
def test_types(name, operands, result):
    made = math_call(name, *(Var("v", d) for d in operands))
    assert made.dtype is result and len(made.args) == len(operands)


def test_operands_are_brought_to_one_type():
    made = math_call("atan2", Var("a", FLOAT16), 2)
    assert isinstance(made.args[1], Const) and made.args[1].dtype is FLOAT16 and made.args[1].value == 2.0
    assert isinstance(math_call("exp", Var("i")).args[0], Cast)


def test_mistakes():
    with pytest.raises(LanguageError, match="got 1 operand"):
        math_call("pow", 1.0)
    with pytest.raises(ShapeError, match="popcount of float32"):
        math_call("popcount", Var("f", FLOAT32))
    with pytest.raises(InternalError, match="no function"):
        math_call("frobnicate", 1.0)
