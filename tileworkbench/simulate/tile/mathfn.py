"""The meaning of every math function: computed in float64, rounded once to float32 and then to the call's dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _erf(x: np.ndarray) -> np.ndarray:
    return _ERF(x).astype(np.float64)


_ERF = np.frompyfunc(math.erf, 1, 1)
_ERFC = np.frompyfunc(math.erfc, 1, 1)
_LGAMMA = np.frompyfunc(lambda v: math.inf if v <= 0 and v == int(v) else math.lgamma(v), 1, 1)


def _round_away(x: np.ndarray) -> np.ndarray:
    return np.trunc(x + np.copysign(0.5, x))


FLOAT: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(10.0, x),
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "cbrt": np.cbrt,
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
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _erf,
    "erfc": lambda x: _ERFC(x).astype(np.float64),
    "lgamma": lambda x: _LGAMMA(x).astype(np.float64),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "silu": lambda x: x / (1.0 + np.exp(-x)),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": _round_away,
    "nearbyint": np.rint,
    "rint": np.rint,
    "pow": np.power,
    "power": np.power,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "fabs": np.abs,
    "fma": lambda a, b, c: a * b + c,
    "rcp": lambda x: 1.0 / x,
    "fdividef": np.divide,
    "ldexp": lambda x, n: np.ldexp(x, np.asarray(n).astype(np.int64)),
}

TESTS: dict[str, Callable[..., Any]] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}

_BITS = {"clz": lambda v, bits: bits - v.bit_length(), "popcount": lambda v, bits: v.bit_count()}
INTEGER: dict[str, Callable[[int, int], int]] = dict(_BITS)  # of the unsigned bits and the width
