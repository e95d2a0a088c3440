"""Every function of the table: its value through a kernel, against Python's own or exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.ir.dtype import DTYPES
from tileworkbench.ir.expr import Call, Load, const
from tileworkbench.ir.mathfn import MATH
from tileworkbench.ir.stmt import Store
from tileworkbench.simulate.tile import mathfn, run

from .build import kernel, parallel, tensor, var

REFERENCE = {
    "exp": math.exp, "exp2": lambda x: 2.0**x, "exp10": lambda x: 10.0**x, "expm1": math.expm1, "log": math.log,
    "log2": math.log2, "log10": math.log10, "log1p": math.log1p, "rsqrt": lambda x: 1 / math.sqrt(x),
    "cbrt": math.cbrt, "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "atan2": math.atan2, "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh,
    "asinh": math.asinh, "acosh": math.acosh, "atanh": math.atanh, "erf": math.erf, "erfc": math.erfc, "pow": math.pow,
    "hypot": math.hypot, "sqrt": math.sqrt, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
    "round": round, "nearbyint": round, "rint": round, "fmod": math.fmod, "copysign": math.copysign,
    "nextafter": None, "abs": abs, "fma": lambda a, b, c: float(Fraction(a) * Fraction(b) + Fraction(c)), "min": min,
    "max": max, "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "lgamma": math.lgamma, "ldexp": math.ldexp,
    "fast_rcp": lambda x: 1 / x, "fast_tanh": math.tanh, "ieee_frsqrt": lambda x: 1 / math.sqrt(x),
}  # fmt: skip
REFERENCE |= {f"__{n}": REFERENCE[n] for n in ("exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan")}
FLOATS = [n for n, row in MATH.items() if row.kind in ("float", "fast", "scale") and REFERENCE.get(n) is not None]


def evaluate(name, columns, dtypes, result):
    """One Call over arrays, as an element kernel."""
    n = len(columns[0])
    inputs = [tensor(f"A{k}", (n,), d) for k, d in enumerate(dtypes)]
    out, i = tensor("B", (n,), result), var("i")
    call = Call(name, tuple(Load(a, (i,)) for a in inputs), dtype=DTYPES[result])
    k = kernel([*inputs, out], [1], [var("bx")], parallel([i], [n], Store(out, (i,), call)), outputs=(len(inputs),))
    return run(k, [np.asarray(c, DTYPES[d].numpy) for c, d in zip(columns, dtypes, strict=True)]).outputs[0]


def test_every_row_has_a_meaning():
    known = {*mathfn.FLOAT, *mathfn.TESTS, *mathfn.BITS, "nextafter"}
    assert [n for n in MATH if n not in known and mathfn.ieee(n) is None] == []


@pytest.mark.parametrize("name", FLOATS)
def test_float_functions_are_rounded_once(name):
    rng = np.random.default_rng(3)
    arity = MATH[name].arity
    low, high = {"acosh": (1, 9), "asin": (-1, 1), "acos": (-1, 1), "atanh": (-0.99, 0.99)}.get(name, (0.01, 6))
    columns = [rng.uniform(low, high, 200).astype(np.float32) for _ in range(arity)]
    dtypes = ["float32"] * arity
    if name == "ldexp":
        columns[1], dtypes[1] = rng.integers(-9, 9, 200).astype(np.int32), "int32"
    want = np.array([REFERENCE[name](*(c.item() for c in row)) for row in zip(*columns, strict=True)], np.float64)
    got = evaluate(name, columns, dtypes, "float32")
    # NumPy's double precision may err by a unit of 2⁻⁵³; one rounding to float32 then is within 0.5 + 2⁻²⁰ units.
    unit = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    assert (np.abs(got - want) <= (0.5 + 2.0**-20) * unit).all()


def test_float16_is_rounded_once_more():
    x = np.linspace(-3, 3, 100).astype(np.float16)
    want = np.array([math.exp(v) for v in x.astype(float)]).astype(np.float32).astype(np.float16)
    assert np.array_equal(evaluate("exp", [x], ["float16"], "float16"), want)


def test_fma_rounds_once():
    a, b = np.float32([1 + 2**-12]), np.float32([1 + 2**-12])
    c = np.float32([-(1 + 2**-11)])
    assert evaluate("fma", [a, b, c], ["float32"] * 3, "float32")[0] == np.float32(2.0**-24)
    tiny = np.float32([2.0**-80])
    got = evaluate("fma", [np.float32([1 + 2**-23]), np.float32([1 + 2.0**-23]), tiny], ["float32"] * 3, "float32")
    assert got[0] == np.float32(1 + 2**-22)


@pytest.mark.parametrize("mode", ["rn", "rz", "ru", "rd"])
@pytest.mark.parametrize("name,exact", [("add", lambda a, b: a + b), ("mul", lambda a, b: a * b),
                                        ("sub", lambda a, b: a - b), ("fdiv", lambda a, b: a / b)])  # fmt: skip
def test_directed_rounding(name, exact, mode):
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((2, 300)).astype(np.float32)
    got = evaluate(f"ieee_{name}_{mode}", [a, b], ["float32"] * 2, "float32")
    for x, y, r in zip(a.tolist(), b.tolist(), got, strict=True):
        true, value = exact(Fraction(x), Fraction(y)), Fraction(float(r))
        up, down = (Fraction(float(np.nextafter(r, np.float32(s)))) for s in (np.inf, -np.inf))
        if mode == "rn":
            assert abs(value - true) <= min(abs(up - true), abs(down - true))
        elif mode == "ru" or (mode == "rz" and true < 0):
            assert value >= true and down < true
        else:
            assert value <= true and up > true


def test_counts_of_bits():
    x = [0, 1, -1, 12, 2**31 - 1, -(2**31)]
    unsigned = [v % 2**32 for v in x]
    assert evaluate("popcount", [x], ["int32"], "int32").tolist() == [v.bit_count() for v in unsigned]
    assert evaluate("clz", [x], ["int32"], "int32").tolist() == [32 - v.bit_length() for v in unsigned]
    assert evaluate("ffs", [x], ["int32"], "int32").tolist() == [0, 1, 1, 3, 1, 32]


def test_classification_and_nextafter():
    x = np.float32([1, np.nan, np.inf, -np.inf])
    assert evaluate("isnan", [x], ["float32"], "bool").tolist() == [False, True, False, False]
    assert evaluate("isinf", [x], ["float32"], "bool").tolist() == [False, False, True, True]
    assert evaluate("isfinite", [x], ["float32"], "bool").tolist() == [True, False, False, False]
    got = evaluate("nextafter", [x[:1], np.float32([2])], ["float32"] * 2, "float32")
    assert got[0] == np.float32(1 + 2**-23)


def test_minimum_and_maximum_skip_nan():
    a, b = np.float32([1, np.nan, 3]), np.float32([2, 5, np.nan])
    assert evaluate("min", [a, b], ["float32"] * 2, "float32").tolist() == [1, 5, 3]
    assert evaluate("max", [a, b], ["float32"] * 2, "float32").tolist() == [2, 5, 3]


def test_unknown_function_is_named():
    with pytest.raises(Exception, match="unheard_of has no meaning"):
        evaluate("unheard_of", [[1.0]], ["float32"], "float32")


def test_integer_operators_over_edges():
    """Every pair of edge values of four types, run-time operands, against Python's integers."""
    for name in ("int8", "uint8", "int32", "int64"):
        dtype = DTYPES[name]
        low, high = int(dtype.min_value()), int(dtype.max_value())
        values = sorted({low, low + 1, *range(max(low, -5), 6), high - 1, high})
        a, b = (np.array(v, dtype.numpy).reshape(-1) for v in np.meshgrid(values, values))
        nonzero = b != 0
        for op, exact in (("add", lambda x, y: x + y), ("sub", lambda x, y: x - y), ("mul", lambda x, y: x * y),
                          ("floordiv", lambda x, y: x // y), ("floormod", lambda x, y: x % y),
                          ("truncdiv", lambda x, y: int(Fraction(x, y))),
                          ("truncmod", lambda x, y: x - y * int(Fraction(x, y))),
                          ("min", min), ("max", max), ("xor", lambda x, y: x ^ y)):  # fmt: skip
            keep = nonzero if "div" in op or "mod" in op else np.ones_like(nonzero)
            got = operate(op, a[keep], b[keep], name)
            span = 1 << dtype.bits
            want = [(exact(int(x), int(y)) - low) % span + low for x, y in zip(a[keep], b[keep], strict=True)]
            assert got.tolist() == want, (name, op)


def operate(op, a, b, dtype):
    from tileworkbench.ir.expr import Binary

    n = len(a)
    x, y, out, i = tensor("X", (n,), dtype), tensor("Y", (n,), dtype), tensor("Z", (n,), dtype), var("i")
    value = Binary(op, Load(x, (i,)), Load(y, (i,)), dtype=DTYPES[dtype])
    k = kernel([x, y, out], [1], [var("bx")], parallel([i], [n], Store(out, (i,), value)), outputs=(2,))
    return run(k, [a, b]).outputs[0]


def test_constants_of_a_kernel_keep_their_dtype():
    @T.prim_func
    def third(A: T.Tensor((4,), "float16"), B: T.Tensor((4,), "float16")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = A[i] * T.float16(1 / 3) + T.float16(0.1)

    a = np.float16([1, 2, 3, 4])
    b = np.zeros(4, np.float16)
    run(third.kernel, [a, b])
    assert np.array_equal(b, a * np.float16(1 / 3) + np.float16(0.1))
    assert const(0.1, DTYPES["float16"]).value == float(np.float16(0.1))
