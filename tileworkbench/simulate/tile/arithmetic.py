"""Operators on machine values: Python ints and Affines while that is exact, else arrays in the dtype's container."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.dtype import DType
from . import affine
from .affine import Affine, low_high
from .rounding import container, rounder, wrapper

_SYMBOLIC: dict[str, Callable[[Any, Any], Any]] = {"add": affine.add, "sub": affine.subtract}
_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shr": lambda x, y: x >> min(y, 127),
    "shl": lambda x, y: x << min(y, 127),
    "pow": lambda x, y: x**y if y >= 0 else int(x == 1),
}
_DIVIDE: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "truncdiv": lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
    "truncmod": lambda x, y: abs(x) % abs(y) * (-1 if x < 0 else 1),
}


def _truncdiv(x: Any, y: Any) -> Any:
    q = np.floor_divide(x, y)
    return q + ((q < 0) & (np.multiply(q, y) != x))


_ARRAY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "pow": np.power,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "truncdiv": _truncdiv,
    "truncmod": np.fmod,
}
# Of two floats of which one is NaN, min and max give the other, as fminf and fmaxf do.
_FLOAT: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.fmin,
    "max": np.fmax,
}
DIVISIONS = frozenset(_DIVIDE)
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def dense(value: Any, dtype: DType) -> Any:
    """An Affine as an array; anything else as it is."""
    return value.dense(dtype.numpy) if isinstance(value, Affine) else value


def as_array(value: Any, dtype: DType) -> Any:
    """The value as a NumPy array or scalar in the dtype's container."""
    if isinstance(value, np.ndarray):
        return value
    return value.dense(dtype.numpy) if isinstance(value, Affine) else container(dtype).type(value)


def integer_operator(op: str, dtype: DType) -> Callable[[Any, Any], Any]:
    """`op` on integers of `dtype` (or bools), with wraparound. Divisors were checked before."""
    wrap = wrapper(dtype)
    plain = _PLAIN.get(op) or _DIVIDE[op]
    array = _ARRAY[op]
    low, high = int(dtype.min_value()), int(dtype.max_value())

    def apply(x: Any, y: Any) -> Any:
        tx, ty = type(x), type(y)
        if tx is int and ty is int:
            return wrap(plain(x, y))
        if tx is not np.ndarray and ty is not np.ndarray:
            out = _symbolic(op, x, y)
            if out is not None:
                bottom, top = low_high(out)
                if low <= bottom and top <= high:
                    return out
        if tx is int and op in ("shl", "shr"):
            x = dtype.numpy.type(x)
        return array(dense(x, dtype), dense(y, dtype))

    if dtype.kind == "bool":
        return lambda x, y: array(x, y) if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) else plain(x, y)
    return apply


def _symbolic(op: str, x: Any, y: Any) -> Any:
    """The result as an int or Affine, None when it is not one."""
    if op in _SYMBOLIC:
        return _SYMBOLIC[op](x, y)
    if op == "mul" and (type(x) is int or type(y) is int):
        return affine.scale(y, x) if type(x) is int else affine.scale(x, y)
    if type(y) is int and y > 0:
        if op == "floordiv" or (op == "truncdiv" and x.low >= 0):
            return affine.divide(x, y)
        if op == "floormod" or (op == "truncmod" and x.low >= 0):
            return affine.modulo(x, y)
    if op in ("min", "max"):
        bx, tx = low_high(x)
        by, ty = low_high(y)
        if tx <= by:
            return x if op == "min" else y
        if ty <= bx:
            return y if op == "min" else x
    return None


def float_operator(op: str, dtype: DType) -> Callable[[Any, Any], Any]:
    """`op` on floats: computed in float32 (float64), then rounded to `dtype`."""
    rounding = rounder(dtype)
    if op == "pow":
        to = container(dtype)

        def power(x: Any, y: Any) -> Any:
            out = np.power(np.asarray(x, np.float64), np.asarray(y, np.float64)).astype(to)
            return out if rounding is None else rounding(out)

        return power
    base = _FLOAT[op]
    if rounding is None or op in ("min", "max"):
        return base
    return lambda x, y: rounding(base(x, y))


def comparison(op: str, dtype: DType) -> Callable[[Any, Any], Any]:
    """Compares two values; integers known by their ranges give a plain truth value."""
    plain = COMPARE[op]
    if dtype.is_float:
        return lambda x, y: plain(x, y) if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) else bool(plain(x, y))

    def apply(x: Any, y: Any) -> Any:
        if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
            return plain(dense(x, dtype), dense(y, dtype))
        if type(x) is not Affine and type(y) is not Affine:
            return bool(plain(x, y))
        difference = affine.subtract(x, y)
        if type(difference) is int:
            return plain(difference, 0)
        low, high = difference.low, difference.high
        known = _by_range(op, low, high)
        return known if known is not None else plain(difference.dense(), 0)

    return apply


def _by_range(op: str, low: int, high: int) -> bool | None:
    """What comparing a value in low … high with 0 gives, None when both are possible."""
    if op in ("lt", "ge"):
        always, never = high < 0, low >= 0
    elif op in ("le", "gt"):
        always, never = high <= 0, low > 0
    else:
        always, never = False, low > 0 or high < 0
    if op in ("ge", "gt", "ne"):
        always, never = never, always
    return True if always else (False if never else None)
