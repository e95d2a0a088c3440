"""Elementwise mathematics: each function folds Python numbers where that is exact, and builds one expression else."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from ..errors import ShapeError
from ..ir.dtype import BOOL
from ..ir.expr import (
    Bitcast,
    Buffer,
    Expr,
    Load,
    as_expr,
    binary,
    const,
    logical_not,
    select,
    unary,
)
from ..ir.expr import cast as ir_cast
from ..ir.expr import ceildiv as ir_ceildiv
from ..ir.mathfn import math_call
from ..ir.stmt import ZERO, Region
from .dtypes import as_dtype
from .faults import fault

Number = int | float


def scalar(value: Any, what: str) -> Expr:
    """An operand of a math function: a number, an expression, a variable, or one element."""
    if isinstance(value, Buffer) and value.space == "var":
        return Load(value, (ZERO,) * value.rank)
    if isinstance(value, Region) and all(isinstance(e, int) and e == 1 for e in value.extents):
        return Load(value.buffer, value.starts)
    if isinstance(value, Buffer | Region):
        raise fault(
            f"{what} of a whole tile", "math functions take scalars", "apply it to elements in a T.Parallel loop"
        )
    return as_expr(value)


def _function(name: str, text: str, arity: int = 1) -> Callable[..., Any]:
    """T.<name>; the table of mathematical functions gives its types."""

    def made(*args: Any) -> Expr:
        return math_call(name, *(scalar(a, f"T.{name}") for a in args))

    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    parameters = [inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in "xyz"[:arity]]
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return made


exp = _function("exp", "e to the power x.")
exp2 = _function("exp2", "2 to the power x.")
exp10 = _function("exp10", "10 to the power x.")
log = _function("log", "Natural logarithm.")
log2 = _function("log2", "Logarithm to base 2.")
log10 = _function("log10", "Logarithm to base 10.")
log1p = _function("log1p", "Natural logarithm of 1 + x.")
sqrt = _function("sqrt", "Square root.")
rsqrt = _function("rsqrt", "1 / sqrt(x).")
sin = _function("sin", "Sine of radians.")
cos = _function("cos", "Cosine of radians.")
tan = _function("tan", "Tangent of radians.")
sinh = _function("sinh", "Hyperbolic sine.")
cosh = _function("cosh", "Hyperbolic cosine.")
tanh = _function("tanh", "Hyperbolic tangent.")
asin = _function("asin", "Arc sine.")
acos = _function("acos", "Arc cosine.")
atan = _function("atan", "Arc tangent.")
asinh = _function("asinh", "Inverse hyperbolic sine.")
acosh = _function("acosh", "Inverse hyperbolic cosine.")
atanh = _function("atanh", "Inverse hyperbolic tangent.")
erf = _function("erf", "The error function.")
sigmoid = _function("sigmoid", "1 / (1 + e^-x).")
atan2 = _function("atan2", "The angle of the point (b, a).", 2)
fmod = _function("fmod", "Remainder with the sign of a.", 2)
hypot = _function("hypot", "sqrt(a² + b²).", 2)
copysign = _function("copysign", "The magnitude of a with the sign of b.", 2)
nextafter = _function("nextafter", "The next float after a towards b.", 2)
isnan = _function("isnan", "Whether x is a NaN.")
isinf = _function("isinf", "Whether x is infinite.")
isfinite = _function("isfinite", "Whether x is neither infinite nor a NaN.")

ldexp = _function("ldexp", "x · 2^y, y an integer.", 2)
popcount = _function("popcount", "The number of one bits.")
clz = _function("clz", "The number of leading zero bits.")
__ffs = _function("ffs", "1 + the position of the lowest one bit; 0 for 0.")
__exp, __exp10 = _function("__exp", "Approximate exp of a float32."), _function("__exp10", "Approximate exp10.")
__log, __log2 = _function("__log", "Approximate log."), _function("__log2", "Approximate log2.")
__log10, __tan = _function("__log10", "Approximate log10."), _function("__tan", "Approximate tangent.")
__sin, __cos = _function("__sin", "Approximate sine."), _function("__cos", "Approximate cosine.")
fast_rcp = _function("fast_rcp", "Approximate 1 / x of a float32.")
ieee_frsqrt = _function("ieee_frsqrt", "1 / sqrt(x), rounded to nearest.")


def _rounding(name: str, text: str) -> Callable[[Any], Expr]:
    """A function to whole numbers; integers are whole already."""

    def made(x: Any) -> Expr:
        operand = scalar(x, f"T.{name}")
        return math_call(name, operand) if operand.dtype.is_float else operand

    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    return made


floor = _rounding("floor", "The largest integer not above x, as a float.")
ceil = _rounding("ceil", "The smallest integer not below x, as a float.")
trunc = _rounding("trunc", "x without its fraction.")
nearbyint = _rounding("nearbyint", "The nearest integer, ties to even.")


def round(x: Any, rounding_mode: str = "ties-to-even") -> Expr:
    """The nearest integer as a float, ties to even."""
    if rounding_mode != "ties-to-even":
        raise fault(f"T.round: rounding_mode={rounding_mode!r}", 'it is "ties-to-even"', "leave it out")
    return nearbyint(x)


def _ieee(name: str, arity: int) -> Callable[..., Any]:
    """An operation rounded as asked ("rn", "rz", "ru", "rd") and never contracted."""

    def made(*args: Any, rounding_mode: str = "rn") -> Expr:
        *operands, last = args
        if isinstance(last, str):
            args, rounding_mode = tuple(operands), last
        if rounding_mode not in ("rn", "rz", "ru", "rd"):
            raise fault(f"T.ieee_{name}: rounding_mode={rounding_mode!r}", "it is rn, rz, ru or rd", "")
        return math_call(f"ieee_{name}_{rounding_mode}", *(scalar(a, f"T.ieee_{name}") for a in args))

    made.__name__ = made.__qualname__ = f"ieee_{name}"
    return made


ieee_add, ieee_sub, ieee_mul, ieee_fdiv = (_ieee(n, 2) for n in ("add", "sub", "mul", "fdiv"))
ieee_frcp, ieee_fsqrt, ieee_fmaf = _ieee("frcp", 1), _ieee("fsqrt", 1), _ieee("fmaf", 3)


def abs(x: Any) -> Any:
    """Absolute value."""
    return unary("abs", scalar(x, "T.abs"))


def pow(x: Any, y: Any) -> Expr:
    """x to the power y."""
    return binary("pow", scalar(x, "T.pow"), scalar(y, "T.pow"))


def _folding(op: str, name: str, text: str, python: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of two numbers that stays a Python number when both are."""

    def made(a: Any, b: Any) -> Any:
        if isinstance(a, Number) and isinstance(b, Number) and not isinstance(a, Expr) and not isinstance(b, Expr):
            return python(a, b)
        return binary(op, scalar(a, f"T.{name}"), scalar(b, f"T.{name}"))

    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    return made


max = _folding("max", "max", "The larger of a and b.", max)
min = _folding("min", "min", "The smaller of a and b.", min)
floordiv = _folding("floordiv", "floordiv", "Quotient rounded towards minus infinity.", lambda a, b: a // b)
floormod = _folding("floormod", "floormod", "Remainder with the sign of b.", lambda a, b: a % b)
truncdiv = _folding("truncdiv", "truncdiv", "Quotient rounded towards 0.", lambda a, b: math.trunc(a / b))
truncmod = _folding("truncmod", "truncmod", "Remainder with the sign of a.", lambda a, b: a - b * math.trunc(a / b))
shift_left = _folding("shl", "shift_left", "a << b.", lambda a, b: a << b)
shift_right = _folding("shr", "shift_right", "a >> b.", lambda a, b: a >> b)
bitwise_and = _folding("and", "bitwise_and", "a & b.", lambda a, b: a & b)
bitwise_or = _folding("or", "bitwise_or", "a | b.", lambda a, b: a | b)
bitwise_xor = _folding("xor", "bitwise_xor", "a ^ b.", lambda a, b: a ^ b)


def bitwise_not(a: Any) -> Expr:
    """~a."""
    x = scalar(a, "T.bitwise_not")
    return logical_not(x) if x.dtype is BOOL else unary("not", x)


def ceildiv(a: Any, b: Any) -> Any:
    """Quotient rounded up; Python ints fold."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return ir_ceildiv(scalar(a, "T.ceildiv"), scalar(b, "T.ceildiv"))


cdiv = ceildiv


def align_up(x: Any, y: Any) -> Any:
    """x rounded up to a multiple of y."""
    return ceildiv(x, y) * y


def clamp(x: Any, lo: Any, hi: Any) -> Any:
    """min(max(x, lo), hi)."""
    return min(max(x, lo), hi)


def if_then_else(cond: Any, a: Any, b: Any) -> Any:
    """`a` where `cond`, else `b`; the side that is not taken is not evaluated."""
    if isinstance(cond, bool | int) and not isinstance(cond, Expr):
        return a if cond else b
    return select(scalar(cond, "T.if_then_else"), scalar(a, "T.if_then_else"), scalar(b, "T.if_then_else"))


Select = if_then_else


def infinity(dtype: Any) -> Expr:
    """Positive infinity of a float type."""
    of = as_dtype(dtype)
    if not of.is_float:
        raise ShapeError(f"T.infinity({of})", rule="infinity is a float", fix="use T.max_value")
    return const(math.inf, of)


def max_value(dtype: Any) -> Expr:
    """The largest finite value of a type."""
    of = as_dtype(dtype)
    return const(of.max_value(), of)


def min_value(dtype: Any) -> Expr:
    """The smallest finite value of a type."""
    of = as_dtype(dtype)
    return const(of.min_value(), of)


def cast(value: Any, dtype: Any, round: str = "", sat: bool = True, rbits: Any = None) -> Expr:
    """`value` as `dtype`, to nearest even; `sat` clamps to the range of an fp8 target."""
    if round not in ("", "rn") or rbits is not None:
        raise fault(f"T.cast with round={round!r}", "casts round to nearest even here", "leave `round` and `rbits` out")
    of = as_dtype(dtype)
    return ir_cast(scalar(value, "T.cast"), of, sat and of.is_float and of.bits == 8)


def Cast(dtype: Any, value: Any) -> Expr:
    """T.cast with the arguments the other way round."""
    return cast(value, dtype)


def reinterpret(value: Any, dtype: Any) -> Expr:
    """The same bits as another type of the same width."""
    if isinstance(value, str) or hasattr(value, "__dtype__"):
        value, dtype = dtype, value  # the older order
    x, of = scalar(value, "T.reinterpret"), as_dtype(dtype)
    if x.dtype.bits != of.bits:
        raise ShapeError(f"T.reinterpret of {x.dtype} as {of}", rule="both types have the same width", fix="use T.cast")
    return x if x.dtype is of else Bitcast(x, dtype=of)


def likely(cond: Any) -> Any:
    """A hint; the condition itself."""
    return cond


__all__ = [
    "Cast",
    "Select",
    "__cos",
    "__exp",
    "__exp10",
    "__ffs",
    "__log",
    "__log2",
    "__log10",
    "__sin",
    "__tan",
    "abs",
    "acos",
    "acosh",
    "align_up",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cast",
    "cdiv",
    "ceil",
    "ceildiv",
    "clamp",
    "clz",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "exp10",
    "fast_rcp",
    "floor",
    "floordiv",
    "floormod",
    "fmod",
    "hypot",
    "ieee_add",
    "ieee_fdiv",
    "ieee_fmaf",
    "ieee_frcp",
    "ieee_frsqrt",
    "ieee_fsqrt",
    "ieee_mul",
    "ieee_sub",
    "if_then_else",
    "infinity",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "likely",
    "log",
    "log1p",
    "log2",
    "log10",
    "max",
    "max_value",
    "min",
    "min_value",
    "nearbyint",
    "nextafter",
    "popcount",
    "pow",
    "reinterpret",
    "round",
    "rsqrt",
    "shift_left",
    "shift_right",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "truncdiv",
    "truncmod",
]
