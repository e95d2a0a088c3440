"""Mathematical functions of expressions, by name, computed in float32 (float64 for float64) and rounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.expr import Call
from . import scalars

_vector_erf = np.vectorize(math.erf, otypes=[np.float64])

_FLOAT: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(10.0, x.astype(np.float64)),
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x.astype(np.float64)),
    "rcp": np.reciprocal,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x.astype(np.float64))),
    "erf": _vector_erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "nearbyint": np.rint,
    "trunc": np.trunc,
    "fabs": np.abs,
    "abs": np.abs,
    "pow": np.power,
    "fmod": np.fmod,
    "copysign": np.copysign,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "max": np.fmax,
    "min": np.fmin,
    # One rounding: the product of two float32 is exact in float64, and the sum is rounded there once more at most.
    "fma": lambda a, b, c: a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64),
}
_TESTS: dict[str, Callable[[Any], Any]] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


def _popcount(x: Any) -> Any:
    return np.bitwise_count(x) if isinstance(x, np.ndarray) else int(x).bit_count()


def _clz32(x: Any) -> Any:
    bits = np.asarray(x).astype(np.int64) & 0xFFFFFFFF
    found = 32 - np.ceil(np.log2(bits + 1)).astype(np.int32)
    return found if np.ndim(x) else int(found)


_INT: dict[str, Callable[..., Any]] = {"popcount": _popcount, "clz": _clz32}


def call(e: Call) -> Callable[..., Any]:
    """The function of a Call on values of the machine."""
    name = e.fn.removeprefix("fast_").removeprefix("__").removesuffix("f") if e.fn not in _FLOAT else e.fn
    if e.args and e.args[0].dtype.is_float:
        to = scalars.computed_as(e.args[0].dtype)
        if name in _TESTS:
            test = _TESTS[name]
            return lambda x: test(x.astype(to))
        if name in _FLOAT:
            fn, back = _FLOAT[name], scalars.rounder(e.dtype)
            return lambda *args: back(np.asarray(fn(*[a.astype(to) for a in args])).astype(to)[()])
    elif name in _INT:
        fn = _INT[name]
        container = e.dtype.numpy
        return lambda *args: _as_int(fn(*args), container)
    raise InternalError(f"the thread machine has no meaning for the function {e.fn!r}")


def _as_int(value: Any, container: Any) -> Any:
    return value.astype(container) if isinstance(value, np.ndarray) else int(value)
