"""Rounding and conversion, bit for bit against ml_dtypes, NumPy and exact integers."""

import ml_dtypes
import numpy as np
import pytest

from tileworkbench.ir.dtype import DTYPES
from tileworkbench.simulate.tile import half
from tileworkbench.simulate.tile.rounding import container, convert, native, round_tf32, widen, wrapper

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")

NARROW = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


def edges(dtype):
    """Every value of `dtype`, the midpoints between neighbours, and their neighbours in float32."""
    code = np.arange(2 ** (8 * np.dtype(dtype).itemsize), dtype=f"u{np.dtype(dtype).itemsize}")
    values = code.view(dtype).astype(np.float32)
    finite = np.sort(values[np.isfinite(values)])
    middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    around = [np.nextafter(m, np.float32(s)) for m in (finite, middle) for s in (np.inf, -np.inf)]
    return np.concatenate([values, middle, *around, np.float32([1e38, -1e38, 1e-45, -0.0])])


def same(a, b):
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0]))


@pytest.mark.parametrize("name", NARROW)
def test_float32_to_narrow(name):
    to, x = DTYPES[name], edges(DTYPES[name].numpy)
    want = x.astype(to.numpy).astype(np.float32)
    assert same(convert(x, DTYPES["float32"], to), want)
    assert same(np.array([convert(v, DTYPES["float32"], to) for v in x[:3000:7]]), want[:3000:7])


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_saturation(name):
    to = DTYPES[name]
    x = np.float32([1e9, -1e9, np.inf, -np.inf, np.nan, 1.0, to.max_value()])
    got = convert(x, DTYPES["float32"], to, saturate=True)
    top = to.max_value()
    assert np.array_equal(got, np.float32([top, -top, top, -top, np.nan, 1, top]), equal_nan=True)


@pytest.mark.parametrize("name", NARROW)
def test_widening_is_exact_and_storing_rounds_once(name):
    dtype = DTYPES[name]
    code = np.arange(2**dtype.bits, dtype=f"u{dtype.bytes}").view(dtype.numpy)
    assert same(widen(code, dtype), code.astype(np.float32))
    if dtype.bits == 16:
        x = edges(dtype.numpy)
        got = native(x, DTYPES["float32"], dtype)
        assert got.dtype == dtype.numpy and same(got.astype(np.float32), x.astype(dtype.numpy).astype(np.float32))


def test_half_on_the_bits_over_pieces_and_transposes():
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((300, 400)) * 10.0 ** rng.integers(-9, 6, (300, 400))).astype(np.float32)
    for view in (x, x.T, x[::2, ::3]):
        want = view.astype(np.float16)
        assert same(half.round_half(view), want.astype(np.float32))
        assert np.array_equal(half.to_half(view), want, equal_nan=True)
        assert np.array_equal(half.to_single(want), want.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_one_rounding_from_float64_and_two_from_integers(name):
    """Values just beside a midpoint: rounding to float32 first would lose what decides."""
    dtype = DTYPES[name]
    bits = 11 if name == "float16" else 8
    one = 2.0**-bits  # half a unit above 1
    x = np.array([1 + one + 2.0**-40, 1 + one - 2.0**-40, 1 + one, 1 + 3 * one, -(1 + one + 2.0**-40)])
    want = np.array([1 + 2 * one, 1, 1, 1 + 4 * one, -(1 + 2 * one)], np.float32)
    assert np.array_equal(convert(x, DTYPES["float64"], dtype), want)
    if name == "bfloat16":
        n = np.array([2**40 + 2**32 + 2**17, 2**40 + 2**32 + 1, 2**40 + 2**32, 2**40 + 2**32 - 1], np.int64)
        assert convert(n, DTYPES["int64"], dtype).tolist() == [2**40 + 2**33, 2**40, 2**40, 2**40]


def test_float_to_integer():
    f32, i32, i8, u8 = (DTYPES[n] for n in ("float32", "int32", "int8", "uint8"))
    x = np.float32([1.9, -1.9, 3e9, -3e9, np.nan, np.inf, -0.5])
    top, bottom = 2**31 - 1, -(2**31)
    assert convert(x, f32, i32).tolist() == [1, -1, top, bottom, 0, top, 0]
    assert convert(np.float32([127.5, 128.5, -129.0]), f32, i8).tolist() == [127, -128, 127]
    assert convert(np.float32([255.9, 256.0]), f32, u8).tolist() == [255, 0]
    assert convert(np.float32([0.0, -0.5, np.nan]), f32, DTYPES["bool"]).tolist() == [False, True, True]


def test_tf32_keeps_ten_bits():
    x = np.float32([1 + 2**-10, 1 + 2**-11, 1 + 2**-12, -(1 + 2**-11), np.inf, np.nan])
    want = np.float32([1 + 2**-10, 1 + 2**-10, 1, -(1 + 2**-10), np.inf, np.nan])
    assert np.array_equal(round_tf32(x), want, equal_nan=True)


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "uint64"])
def test_wraparound(name):
    dtype = DTYPES[name]
    wrap = wrapper(dtype)
    low, high = int(dtype.min_value()), int(dtype.max_value())
    assert wrap(high + 1) == low and wrap(low - 1) == high and wrap(high) == high
    assert wrap(3 * 2**dtype.bits + 5) == 5


def test_arithmetic_of_narrow_floats_rounds_correctly():
    """Sums, products and quotients of random float16 and bfloat16 against exact rational results."""
    from fractions import Fraction

    from tileworkbench.simulate.tile.arithmetic import float_operator

    rng = np.random.default_rng(1)
    for name in ("float16", "bfloat16"):
        dtype = DTYPES[name]
        a, b = ((rng.standard_normal(400) * 8).astype(dtype.numpy) for _ in range(2))
        for op, exact in (("add", lambda x, y: x + y), ("mul", lambda x, y: x * y), ("div", lambda x, y: x / y)):
            got = float_operator(op, dtype)(a.astype(np.float32), b.astype(np.float32))
            for x, y, r in zip(a.astype(float), b.astype(float), got, strict=True):
                true = exact(Fraction(x), Fraction(y))
                near = dtype.numpy.type(r)
                sides = [Fraction(float(np.nextafter(near, dtype.numpy.type(s)))) for s in (np.inf, -np.inf)]
                assert all(abs(Fraction(float(near)) - true) <= abs(s - true) for s in sides)


def test_containers():
    assert container(DTYPES["bfloat16"]) == np.float32 and container(DTYPES["int8"]) == np.int8
    assert container(DTYPES["float64"]) == np.float64
    assert ml_dtypes.finfo(DTYPES["bfloat16"].numpy).nmant == 7
