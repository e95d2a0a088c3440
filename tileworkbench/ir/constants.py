"""Constants: Python numbers as expressions of a type that can hold them."""

from __future__ import annotations

import math

import numpy as np

from ..errors import LanguageError
from .dtype import BOOL, DTYPES, FLOAT32, INT32, DType
from .terms import Const, Expr, Value

Number = int | float | bool


def const(value: Number, to: DType | None = None) -> Const:
    """A constant of type `to`, rounded to it; without `to`: bool, int32 (int64 if it needs it) or float32."""
    if to is None:
        to = BOOL if isinstance(value, bool) else (_int_type(value) if isinstance(value, int) else _float_type(value))
    if to.is_fp8:
        return Const(fp8(value, to, math.isfinite(value)), dtype=to)
    if to.is_float:
        return Const(_rounded(value, to), dtype=to)
    if to is BOOL:
        return Const(bool(value), dtype=to)
    known = _SMALL.get((to.name, value))
    if known is not None:
        return known
    wrapped = int(value) & ((1 << to.bits) - 1)
    if to.kind == "int" and wrapped >> (to.bits - 1):
        wrapped -= 1 << to.bits
    return Const(wrapped, dtype=to)


_FINITE = 60_000  # every float of 16 bits or more reaches so far


def _rounded(value: Number, to: DType) -> float:
    """The nearest value of a float type, an infinity beyond its range."""
    if not abs(value) >= _FINITE:  # NaN too
        return float(to.numpy.type(value))
    try:
        with np.errstate(over="ignore"):
            return float(to.numpy.type(value))
    except OverflowError:  # an int beyond any float
        return math.inf if value > 0 else -math.inf


# Small constants are made once: index arithmetic asks for them all the time.
_SMALL: dict[tuple[str, Number], Const] = {
    (to.name, value): Const(value, dtype=to) for to in (INT32, DTYPES["int64"]) for value in range(-64, 257)
}


def fp8(value: Number, to: DType, saturate: bool) -> float:
    """The nearest value of `to`, in its range with `saturate`."""
    clamped = min(max(value, to.min_value()), to.max_value()) if saturate and value == value else value
    return float(to.numpy.type(clamped))


def _int_type(value: int) -> DType:
    return INT32 if -(2**31) <= value < 2**31 else DTYPES["int64"]


def _float_type(value: float) -> DType:
    return FLOAT32 if holds(FLOAT32, value) else DTYPES["float64"]


def as_expr(value: Value, like: DType | None = None) -> Expr:
    """`value` as an expression; a Python number takes the type `like` when it can hold it."""
    if isinstance(value, Expr):
        return value
    if like is not None and type(value) is int:
        known = _SMALL.get((like.name, value))
        if known is not None:
            return known
    if isinstance(value, (bool, int, float)):
        return const(value, like if like is not None and holds(like, value) else None)
    if hasattr(value, "item"):  # a NumPy scalar
        return as_expr(value.item(), like)
    raise LanguageError(
        f"{type(value).__name__} is not a scalar value",
        rule="an expression takes numbers and tile values",
        fix="index a tile, or use a number",
    )


def holds(to: DType, value: int | float) -> bool:
    """Floats take numbers up to their largest (those of 8 bits and less clamp, so any); integers those of their width,
    unsigned ones the patterns of negative numbers too."""
    if to.is_float and to.bits >= 16:
        return not abs(value) >= _FINITE or abs(value) == math.inf or math.isfinite(_rounded(value, to))
    if to.is_float or not to.is_int or isinstance(value, float):
        return to.is_float
    return -(1 << to.bits - 1) <= value < (1 << to.bits - (to.kind == "int"))
