"""The meaning of every function that a Call may name (the table `ir.mathfn.MATH`).

Float functions are computed in float64 and rounded once to float32, then to the operand's type. Those with a rounding
mode of their own are computed exactly enough in float64 (or by an exact residue) and rounded as their name says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]


def _scalar(fn: Callable[[float], float]) -> Function:
    each = np.frompyfunc(fn, 1, 1)
    return lambda x: np.asarray(each(x)).astype(np.float64)


def _lgamma(v: float) -> float:
    if math.isinf(v) or (v <= 0 and v == math.floor(v)):
        return math.inf
    return math.lgamma(v)


def _fma(a: Any, b: Any, c: Any) -> Any:
    """a · b + c of float32 values: the product is exact in float64; the sum is rounded to odd, so that the rounding to
    float32 that follows is the only one."""
    product = np.multiply(a, b)
    total = np.asarray(product + c)
    # Two-sum: what the addition lost.
    big = total - product
    lost = (product - (total - big)) + (c - big)
    odd = (total.view(np.int64) & 1) == 1
    toward = np.where(lost > 0, np.inf, -np.inf)
    fixed = np.nextafter(total, toward)
    return np.where((lost != 0) & np.isfinite(total) & ~odd, fixed, total)


_ARRAY: dict[str, Function] = {
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
    "erf": _scalar(math.erf),
    "erfc": _scalar(math.erfc),
    "lgamma": _scalar(_lgamma),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "nearbyint": np.rint,
    "rint": np.rint,
    "round_away": lambda x: np.copysign(np.where(np.abs(x) % 1 >= 0.5, np.ceil(np.abs(x)), np.floor(np.abs(x))), x),
    "pow": np.power,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "abs": np.abs,
    "min": np.fmin,
    "max": np.fmax,
    "fma": _fma,
    "ldexp": lambda x, n: np.ldexp(x, np.asarray(n).astype(np.int64)),
}
# The fast forms mean the same function; a GPU's answer differs by what the table of accuracies says.
_FAST = {f"__{name}": _ARRAY[name] for name in ("exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan")}
_FAST |= {"fast_rcp": lambda x: 1.0 / x, "fast_tanh": np.tanh, "ieee_frsqrt": _ARRAY["rsqrt"]}
FLOAT: dict[str, Function] = {**_ARRAY, **_FAST}

TESTS: dict[str, Function] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}

# Of the operand's bits as an unsigned integer, and its width.
BITS: dict[str, Callable[[int, int], int]] = {
    "popcount": lambda v, bits: v.bit_count(),
    "clz": lambda v, bits: bits - v.bit_length(),
    "ffs": lambda v, bits: (v & -v).bit_length(),
}


def bits_function(name: str, width: int) -> Callable[[Any], Any]:
    """popcount, clz or ffs of Python ints or integer arrays of `width` bits, as int32."""
    mask = (1 << width) - 1
    each = BITS[name]
    array = np.frompyfunc(lambda v: each(int(v) & mask, width), 1, 1)
    return lambda x: each(x & mask, width) if type(x) is int else np.asarray(array(x)).astype(np.int32)


def nextafter(x: Any, y: Any) -> Any:
    """In the type of the operands, not in float64."""
    return np.nextafter(x, y)


# --- operations with a rounding mode ---------------------------------------------------------------------------------
_DIRECTED: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fdiv": np.divide,
    "frcp": lambda x: 1.0 / x,
    "fsqrt": np.sqrt,
    "fmaf": lambda a, b, c: a * b + c,
}


def ieee(name: str) -> Function | None:
    """`ieee_add_ru` and its like on float32 values; None for other names."""
    parts = name.split("_")
    if len(parts) != 3 or parts[0] != "ieee" or parts[1] not in _DIRECTED:
        return None
    wide, mode = _DIRECTED[parts[1]], parts[2]

    def apply(*args: Any) -> Any:
        # Extended precision holds each result to far more bits than float32: what is left is one directed rounding.
        exact = wide(*(np.asarray(a).astype(np.longdouble) for a in args))
        near = np.asarray(exact).astype(np.float32)
        if mode == "rn":
            return near
        back = near.astype(np.longdouble)
        down = np.nextafter(near, np.float32(-np.inf))
        up = np.nextafter(near, np.float32(np.inf))
        if mode == "rd" or mode == "ru":
            wrong = back > exact if mode == "rd" else back < exact
            return np.where(wrong, down if mode == "rd" else up, near)
        return np.where(np.abs(back) > np.abs(exact), np.where(exact > 0, down, up), near)

    return apply
