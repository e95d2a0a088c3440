"""Scalar arithmetic of the thread machine on one value a lane.

A value that is the same in all lanes is a Python int or bool, or a NumPy scalar; any other is an array with one entry a
lane. Integers wrap to their width. Floats below 32 bits are computed in float32 and rounded to their type; float32 and
float64 are computed as they are, so every single operation is rounded as the device rounds it (no contraction).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.dtype import BOOL, DTYPES, DType

Binary = Callable[[Any, Any], Any]
Unary = Callable[[Any], Any]


@cache
def wrap_int(dtype: DType) -> Unary:
    """Wraps a Python int to the width of `dtype`; arrays have wrapped already."""
    low, high, mask = int(dtype.min_value()), int(dtype.max_value()), (1 << dtype.bits) - 1
    sign = 1 << (dtype.bits - 1) if dtype.kind == "int" else 0

    def wrap(value: Any) -> Any:
        if type(value) is int and not low <= value <= high:
            value &= mask
            return value - (1 << dtype.bits) if value & sign else value
        return value

    return wrap


def _is_array(value: Any) -> bool:
    return type(value) is np.ndarray


def _trunc_div(x: Any, y: Any) -> Any:
    if _is_array(x) or _is_array(y):
        quotient = np.abs(x) // np.maximum(np.abs(y), 1)
        return np.where((np.asarray(x) < 0) != (np.asarray(y) < 0), -quotient, quotient).astype(np.asarray(x).dtype)
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0


def _trunc_mod(x: Any, y: Any) -> Any:
    if _is_array(x) or _is_array(y):
        return np.fmod(x, y)
    return abs(x) % abs(y) * (-1 if x < 0 else 1) if y else 0


def _either(python: Binary, array: Binary) -> Binary:
    return lambda x, y: array(x, y) if _is_array(x) or _is_array(y) else python(x, y)


_INT: dict[str, Binary] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    # A zero divisor is reported before this runs; lanes that are switched off may still hold one.
    "floordiv": _either(lambda x, y: x // y if y else 0, np.floor_divide),
    "floormod": _either(lambda x, y: x % y if y else 0, np.mod),
    "truncdiv": _trunc_div,
    "truncmod": _trunc_mod,
    "min": _either(min, np.minimum),
    "max": _either(max, np.maximum),
    "pow": _either(lambda x, y: x**y if y >= 0 else 0, np.power),
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "shl": _either(lambda x, y: x << (y & 63), np.left_shift),
    "shr": _either(lambda x, y: x >> (y & 63), np.right_shift),
}
_FLOAT: dict[str, Binary] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    # The device's min and max return the other operand for a NaN.
    "min": np.fmin,
    "max": np.fmax,
    "pow": np.power,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
}
_COMPARE: dict[str, Binary] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}
_LOGIC: dict[str, Binary] = {
    "and": _either(lambda x, y: bool(x) & bool(y), np.logical_and),
    "or": _either(lambda x, y: bool(x) | bool(y), np.logical_or),
    "xor": _either(lambda x, y: bool(x) ^ bool(y), np.logical_xor),
    "land": _either(lambda x, y: bool(x) and bool(y), np.logical_and),
    "lor": _either(lambda x, y: bool(x) or bool(y), np.logical_or),
}


def round_tf32(value: Any) -> Any:
    """Float32 values rounded to tf32's 10 stored mantissa bits, to nearest even."""
    bits = np.asarray(value, dtype=np.float32).view(np.uint32)
    finite = (bits & 0x7F800000) != 0x7F800000
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)
    return np.where(finite, rounded, bits).astype(np.uint32).view(np.float32)


def rounder(dtype: DType) -> Unary:
    """Rounds a float32 or float64 result to `dtype`'s container."""
    if dtype.name == "tfloat32":
        return round_tf32
    container = dtype.numpy
    return lambda value: value.astype(container)


def computed_as(dtype: DType) -> np.dtype:
    """The NumPy type that arithmetic on `dtype` is done in."""
    return np.dtype(np.float64) if dtype.name == "float64" else np.dtype(np.float32)


@cache
def binary(op: str, dtype: DType) -> Binary:
    """`x op y` for operands of `dtype`, with a result of `dtype`."""
    if dtype is BOOL:
        table = _LOGIC if op in _LOGIC else _INT
        return table[op]
    if dtype.is_float:
        fn, to, back = _FLOAT.get(op), computed_as(dtype), rounder(dtype)
        if fn is None:
            raise InternalError(f"`{op}` on {dtype} has no meaning in the thread machine")
        if dtype.numpy == to:
            return fn if dtype.name != "tfloat32" else lambda x, y: back(fn(x, y))
        return lambda x, y: back(fn(x.astype(to), y.astype(to)))
    return _wrapping(_INT[op], dtype)


def _wrapping(raw: Binary, dtype: DType) -> Binary:
    """`raw` with Python ints wrapped to the type; written out because it is the machine's most frequent step."""
    low, high, wrap = int(dtype.min_value()), int(dtype.max_value()), wrap_int(dtype)

    def run(x: Any, y: Any) -> Any:
        value = raw(x, y)
        return wrap(value) if type(value) is int and not low <= value <= high else value

    return run


@cache
def compare(op: str, dtype: DType) -> Binary:
    """The truth of `x op y` for operands of `dtype`."""
    fn = _COMPARE[op]
    if dtype.is_float and dtype.bits < 32:
        return lambda x, y: fn(x.astype(np.float32), y.astype(np.float32))
    return fn


def unary(op: str, dtype: DType) -> Unary:
    """`op x` for an operand of `dtype`."""
    if op == "lnot":
        return lambda x: np.logical_not(x) if _is_array(x) else not x
    if dtype.is_float:
        fn, back, to = {"neg": np.negative, "abs": np.abs}[op], rounder(dtype), computed_as(dtype)
        return lambda x: back(fn(x.astype(to)))
    raw: Unary = {"neg": lambda x: -x, "abs": abs, "not": lambda x: ~x}[op]
    wrap = wrap_int(dtype)
    return lambda x: wrap(raw(x))


def constant(value: Any, dtype: DType) -> Any:
    """A literal as a value: a Python int or bool, or a NumPy scalar of the container."""
    if dtype is BOOL:
        return bool(value)
    if dtype.is_float:
        return np.float32(value).astype(dtype.numpy) if dtype.bits <= 32 else np.float64(value)
    return wrap_int(dtype)(int(value))


# ml_dtypes narrows a float64 by way of float32, which would round it twice.
_BY_FLOAT = frozenset(d.name for d in DTYPES.values() if d.is_float and d.bits <= 16 and d.name != "float16")


def round_odd(value: Any) -> Any:
    """float64 as float32, cut and with its last bit set where anything was lost: one more rounding is then as good as
    one from the float64."""
    wide = np.asarray(value, dtype=np.float64)
    near = wide.astype(np.float32)
    far = np.abs(near.astype(np.float64)) > np.abs(wide)
    cut = np.where(far & ~np.isnan(wide), np.nextafter(near, np.float32(0)), near)
    lost = (cut.astype(np.float64) != wide) & ~np.isnan(wide)
    return (cut.view(np.int32) | lost).astype(np.int32).view(np.float32)


def as_lanes(value: Any, dtype: DType, lanes: int) -> np.ndarray:
    """The value as one array entry a lane, in `dtype`'s container."""
    if type(value) is np.ndarray and value.ndim:
        return value if value.dtype == dtype.numpy else value.astype(dtype.numpy)
    return np.full(lanes, value, dtype=dtype.numpy)


def converter(source: DType, to: DType, saturate: bool) -> Unary:
    """Value conversion: nearest even to floats, truncation to integers (clamped to the range, NaN to 0, as the
    device's conversions do), wrapping between integers."""
    if to is BOOL:
        return lambda x: x.astype(np.float32) != 0 if source.is_float else (x != 0)
    if to.is_float:
        back = rounder(to)
        limit = float(to.max_value()) if saturate and to.is_fp8 else None
        wide = np.float64 if "float64" in (source.name, to.name) else np.float32

        def to_float(x: Any) -> Any:
            if source.is_int:  # to narrow floats by way of float32, as the device's conversions do
                y: Any = np.asarray(x, dtype=source.numpy).astype(wide)
            else:
                y = x.astype(wide) if isinstance(x, np.ndarray | np.generic) else wide(x)
            if limit is not None:
                y = np.where(np.isnan(y), y, np.clip(y, -limit, limit)).astype(wide)
            return back(y if wide is np.float32 or to.name not in _BY_FLOAT else round_odd(y))

        return to_float
    return _to_int(source, to, saturate)


def _to_int(source: DType, to: DType, saturate: bool) -> Unary:
    low, high, container = int(to.min_value()), int(to.max_value()), to.numpy
    wrap = wrap_int(to)
    if source.is_float:
        top = float(high) if to.bits < 64 else float(np.nextafter(float(high), 0.0))

        def from_float(x: Any) -> Any:
            y = np.nan_to_num(np.trunc(np.asarray(x).astype(np.float64)), nan=0.0)
            y = np.clip(y, float(low), top)
            return int(y) if y.ndim == 0 else y.astype(container)

        return from_float

    def from_int(x: Any) -> Any:
        if type(x) is np.ndarray:
            return (np.clip(x, low, high) if saturate else x).astype(container)
        return min(max(int(x), low), high) if saturate else wrap(int(x))

    return from_int


def bitcaster(source: DType, to: DType) -> Unary:
    """The same bits as another type of the same width."""
    if source.bytes != to.bytes:
        raise InternalError(f"bitcast from {source} to {to} changes the width")
    held, wanted = source.numpy, to.numpy

    def cast(x: Any) -> Any:
        y = np.asarray(x, dtype=held).view(wanted)
        if y.ndim:
            return y
        return y[()] if to.is_float else y.item()

    return cast
