"""Integer algebra of constants and of run-time values: Python's meaning, wrapped to the type, for all integer types."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from tileworkbench.errors import ShapeError
from tileworkbench.ir.arith import Facts
from tileworkbench.ir.dtype import DTYPES
from tileworkbench.ir.evaluate import evaluate
from tileworkbench.ir.expr import Binary, Const, Var, as_expr, binary, ceildiv, compare, const, unary

TYPES = [DTYPES[f"{kind}{bits}"] for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
SMALL = range(-9, 10)


def trunc_div(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


PYTHON = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "truncdiv": trunc_div,
    "truncmod": lambda a, b: a - b * trunc_div(a, b),
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
}
DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")


def wrap(value, to):
    """`value` modulo 2^bits, in the range of the type; by NumPy's own conversion."""
    return int(np.array([value & (2**64 - 1)], np.uint64).view(np.int64).astype(to.numpy)[0])


def values(to):
    low, high = int(to.min_value()), int(to.max_value())
    return [v for v in SMALL if low <= v] + [low, low + 1, high - 1, high]


def defined(op, a, b, to):
    if op in DIVISIONS:
        return b != 0
    return 0 <= b < 2 * to.bits if op in ("shl", "shr") else True


@pytest.mark.parametrize("to", TYPES, ids=str)
@pytest.mark.parametrize("op", PYTHON)
def test_constants_fold_to_pythons_value_wrapped(op, to):
    for a in values(to):
        for b in values(to):
            if defined(op, a, b, to):
                found = binary(op, const(a, to), const(b, to))
                assert isinstance(found, Const) and found.dtype is to
                assert found.value == wrap(PYTHON[op](a, b), to), (op, a, b)


@pytest.mark.parametrize("to", TYPES, ids=str)
def test_unary_operators_and_ceildiv_fold(to):
    for a in values(to):
        assert unary("neg", const(a, to)).value == wrap(-a, to)
        assert unary("not", const(a, to)).value == wrap(~a, to)
        assert unary("abs", const(a, to)).value == wrap(abs(a), to)
        for b in values(to):
            if b:
                assert ceildiv(const(a, to), const(b, to)).value == wrap(-(-a // b), to)


@pytest.mark.parametrize("to", TYPES, ids=str)
@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_fold(op, to):
    for a in values(to):
        for b in values(to):
            assert compare(op, const(a, to), const(b, to)).value is getattr(operator, op)(a, b)


@pytest.mark.parametrize("op", PYTHON)
def test_run_time_values_mean_the_same(op):
    x, y = Var("x"), Var("y")
    pairs = [(a, b) for a in SMALL for b in SMALL if defined(op, a, b, DTYPES["int32"])]
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    wanted = [PYTHON[op](int(i), int(j)) for i, j in pairs]
    assert np.array_equal(evaluate(binary(op, x, y), {x: a, y: b}), wanted)
    for divisor in sorted({j for _, j in pairs}):
        column = np.array([i for i, j in pairs if j == divisor])
        wanted = [PYTHON[op](int(i), divisor) for i in column]
        made = binary(op, x, divisor)
        facts = Facts({x: (-9, 9)})
        for e in (made, facts.simplify(made)):
            assert np.array_equal(np.broadcast_to(evaluate(e, {x: column}), column.shape), wanted), (op, divisor)


def test_ceildiv_at_run_time():
    x = Var("x")
    for b in (*range(-9, 0), *range(1, 10)):
        made = ceildiv(x, b)
        assert [int(evaluate(made, {x: a})) for a in SMALL] == [-(-a // b) for a in SMALL]


def test_python_numbers_take_a_type_that_holds_them():
    small, unsigned = Var("s", DTYPES["int8"]), Var("u", DTYPES["uint8"])
    assert as_expr(100, small.dtype).dtype.name == "int8"
    assert (small + 300).dtype.name == "int32" and (small + 300).b.value == 300
    assert as_expr(-4, unsigned.dtype).value == 252
    assert (Var("i") & 0xFFFFFFFF).dtype.name == "int64"


def test_a_number_beside_a_value_has_32_bits_at_least():
    for name in ("int8", "uint8", "int16", "uint16", "int32"):
        assert (Var("v", DTYPES[name]) * 2).dtype.name == "int32"
        assert (Var("v", DTYPES[name]) * 0.5).dtype.name == "float32"
    for name in ("uint32", "int64", "uint64"):
        assert (Var("v", DTYPES[name]) - 1).dtype.name == name
    for name in ("float16", "bfloat16"):
        assert (Var("v", DTYPES[name]) * 2).dtype.name == name
        assert (Var("v", DTYPES[name]) * 0.5).dtype.name == "float32"
    assert (Var("v", DTYPES["float64"]) * 0.1).b.value == 0.1


def test_of_integers_as_wide_the_unsigned_one_wins():
    assert (Var("s", DTYPES["int32"]) + Var("u", DTYPES["uint32"])).dtype.name == "uint32"
    assert (Var("u", DTYPES["uint8"]) + Var("s", DTYPES["int8"])).dtype.name == "uint8"
    assert (Var("s", DTYPES["int64"]) + Var("u", DTYPES["uint32"])).dtype.name == "int64"


def test_shifts_that_have_no_meaning():
    with pytest.raises(ShapeError, match="shift by -1"):
        binary("shl", const(1), const(-1))
    assert binary("shl", const(1), const(10**9)).value == 0
    assert binary("shr", const(-8), const(100)).value == -1


def test_division_by_the_constant_zero():
    for op in DIVISIONS:
        with pytest.raises(ShapeError, match="zero"):
            binary(op, const(3), const(0))


def test_neutral_elements_vanish_and_others_stay():
    x = Var("x")
    for op, value in (
        ("add", 0),
        ("sub", 0),
        ("mul", 1),
        ("floordiv", 1),
        ("or", 0),
        ("xor", 0),
        ("shl", 0),
        ("shr", 0),
    ):
        assert binary(op, x, value) is x
    for op, value in (("floordiv", -1), ("floormod", -1), ("and", -1), ("sub", 1)):
        assert isinstance(binary(op, x, value), Binary)
