"""Mathematical functions of expressions: every row of the IR's table on values of the machine.

Functions of floats are computed in float64 (in float32 where NumPy's own is as good) and rounded once to the operand's
type, which for a type below float32 means through float32, as the device does. The hardware's approximations are
computed like the precise functions: the thread machine judges order and data flow, not the last bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.dtype import DType
from ...ir.expr import Call
from ...ir.mathfn import math_fn
from . import scalars

Fn = Callable[..., Any]


def _each(fn: Callable[[float], float]) -> Fn:
    return np.vectorize(fn, otypes=[np.float64])


def _gamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf if math.isfinite(x) or x == math.inf else math.nan


def _away(x: Any) -> Any:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


_DOUBLE: dict[str, Fn] = {
    **{name: getattr(np, name) for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh", "cosh",
        "tanh", "floor", "ceil", "trunc", "rint", "fmod", "copysign", "hypot",
    )},
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "rcp": lambda x: 1.0 / x,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "lgamma": _each(_gamma),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "pow": np.power,
    "round": np.rint,
    "nearbyint": np.rint,
    "round_away": _away,
    "abs": np.abs,
    "min": np.fmin,
    "max": np.fmax,
    # The product of two float32 is exact in float64; for float64 operands this rounds twice.
    "fma": lambda a, b, c: a * b + c,
    "ldexp": lambda x, n: x * np.exp2(n),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fdiv": np.divide,
    "frcp": lambda x: 1.0 / x,
    "fsqrt": np.sqrt,
    "frsqrt": lambda x: 1.0 / np.sqrt(x),
    "fmaf": lambda a, b, c: a * b + c,
}  # fmt: skip
_TESTS: dict[str, Fn] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


def call(e: Call) -> Fn:
    """The function of a Call. InternalError for one that the IR's table does not have."""
    row = math_fn(e.fn)
    operand = e.args[0].dtype
    if row.kind == "test":
        test = _TESTS[row.name]
        return lambda x: test(x.astype(np.float64))
    if row.kind == "bits":
        return _bits(row.name, operand, e.dtype)
    if row.name == "nextafter":
        return lambda x, y: np.nextafter(x, y)
    mode, name = "rn", row.name.removeprefix("__").removeprefix("fast_")
    if name.startswith("ieee_"):
        name = name.removeprefix("ieee_")
        name, mode = name.rsplit("_", 1) if "_" in name else (name, "rn")
    if name not in _DOUBLE:
        raise InternalError(f"the thread machine has no meaning for the function {e.fn!r}")
    fn, back = _DOUBLE[name], _rounded(e.dtype, mode)
    return lambda *args: back(fn(*[np.asarray(a).astype(np.float64) for a in args]))


def _rounded(dtype: DType, mode: str) -> Fn:
    """A float64 result as a value of `dtype`. Directed modes step from the nearest value where that lies beyond."""
    back, via = scalars.rounder(dtype), scalars.computed_as(dtype)

    def nearest(exact: Any) -> Any:
        return back(np.asarray(exact).astype(via))[()]

    if mode == "rn":
        return nearest

    def directed(exact: Any) -> Any:
        near = np.asarray(nearest(exact))
        toward = {"ru": np.inf, "rd": -np.inf}.get(mode, 0.0)
        wide = near.astype(np.float64)
        beyond = {"ru": wide < exact, "rd": wide > exact}.get(mode, np.abs(wide) > np.abs(exact))
        return np.where(beyond, np.nextafter(near, near.dtype.type(toward)), near).astype(near.dtype)[()]

    return directed


def _bits(name: str, operand: DType, result: DType) -> Fn:
    width, mask = operand.bits, (1 << operand.bits) - 1

    def one(x: Any) -> int:
        held = int(x) & mask
        if name == "popcount":
            return held.bit_count()
        if name == "clz":
            return width - held.bit_length()
        return (held & -held).bit_length()  # ffs

    def run(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return one(x)
        return np.array([one(v) for v in x.tolist()], dtype=result.numpy)

    return run
