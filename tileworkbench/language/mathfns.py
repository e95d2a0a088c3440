"""Elementwise mathematics: each function folds Python numbers where that is exact, and builds one expression else."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import LanguageError, ShapeError
from ..ir.dtype import FLOAT64
from ..ir.expr import Buffer, Expr, Load, as_expr, cast, truth
from ..ir.mathfn import math_call
from ..ir.stmt import ZERO, Region
from .faults import fault, shown

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


def operand(value: Any, what: str) -> Any:
    """A number as it is, which takes the type of what stands beside it; otherwise `scalar`'s."""
    return value if type(value) in (int, float) else scalar(value, what)


def named(names: Sequence[str], **defaults: Any) -> inspect.Signature:
    """The signature of a made function: operands by place or name, then parameters with defaults."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    operands = [inspect.Parameter(name, kind) for name in names]
    return inspect.Signature([*operands, *(inspect.Parameter(n, kind, default=v) for n, v in defaults.items())])


class NotPredicate(LanguageError, TypeError):
    """A vote was given a float."""


def predicate_of(value: Any, what: str) -> Expr:
    """A truth value: a comparison, or an integer that is not 0."""
    test = scalar(value, what)
    if test.dtype.is_float:
        raise NotPredicate(
            f"{what} requires an integer or boolean predicate, and got {test.dtype}",
            rule="a predicate is true or false",
            fix="compare it: `x != 0`",
        )
    return truth(test)


def _function(name: str, text: str, names: Sequence[str] = "x") -> Callable[..., Any]:
    """T.<name>; the table of mathematical functions gives its types."""
    signature = named(names)

    def made(*args: Any, **given: Any) -> Expr:
        return math_call(name, *(operand(a, f"T.{name}") for a in signature.bind(*args, **given).args))

    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    made.__signature__ = signature  # type: ignore[attr-defined]
    return made


_TWO = ("x1", "x2")


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
atan2 = _function("atan2", "The angle of the point (x2, x1).", _TWO)
fmod = _function("fmod", "Remainder with the sign of x.", "xy")
hypot = _function("hypot", "sqrt(x1² + x2²).", _TWO)
copysign = _function("copysign", "The magnitude of x1 with the sign of x2.", _TWO)
nextafter = _function("nextafter", "The next float after x1 towards x2.", _TWO)
isnan = _function("isnan", "Whether x is a NaN.")
isinf = _function("isinf", "Whether x is infinite.")
isfinite = _function("isfinite", "Whether x is neither infinite nor a NaN.")

ldexp = _function("ldexp", "x1 · 2^x2, x2 an integer.", _TWO)
popcount = _function("popcount", "The number of one bits.")
clz = _function("clz", "The number of leading zero bits.")
__ffs = _function("ffs", "1 + the position of the lowest one bit; 0 for 0.")


class NotFloat(ShapeError, TypeError):
    """A function of floats was given another type."""


def _approximate(name: str, text: str) -> Callable[[Any], Expr]:
    """T.__<name>: the hardware's approximation on float32. Float64 has none, so there it is the function itself; of
    narrower floats the result has their type."""

    def made(x: Any) -> Expr:
        operand = scalar(x, f"T.__{name}")
        if not operand.dtype.is_float or operand.dtype.bits < 16:
            raise NotFloat(
                f"T.__{name} only supports floating-point inputs, but got {operand.dtype}",
                rule="it approximates a function of floats of 16 bits or more",
                fix=f'T.__{name}(T.cast(x, "float32"))',
            )
        if operand.dtype is FLOAT64:
            return math_call(name, operand)
        return cast(math_call(f"__{name}", operand), operand.dtype)

    made.__name__ = made.__qualname__ = f"__{name}"
    made.__doc__ = text
    return made


__exp, __exp10 = _approximate("exp", "Approximate exp."), _approximate("exp10", "Approximate exp10.")
__log, __log2 = _approximate("log", "Approximate log."), _approximate("log2", "Approximate log2.")
__log10, __tan = _approximate("log10", "Approximate log10."), _approximate("tan", "Approximate tangent.")
__sin, __cos = _approximate("sin", "Approximate sine."), _approximate("cos", "Approximate cosine.")
fast_rcp = _function("fast_rcp", "Approximate 1 / x of a float32.")


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
_round_away = _rounding("round_away", "The nearest integer, ties away from zero.")


def round(x: Any, rounding_mode: str = "ties-to-even") -> Expr:
    """The nearest integer as a float, ties to even or ("ties-away-from-zero") away from zero."""
    modes = {"ties-to-even": nearbyint, "ties-away-from-zero": _round_away}
    if rounding_mode not in modes:
        raise fault(
            f"Unsupported T.round rounding_mode {shown(rounding_mode)}",
            'it is "ties-to-even" or "ties-away-from-zero"',
            "leave it out for ties to even",
        )
    return modes[rounding_mode](x)


def ieee_frsqrt(x: Any) -> Expr:
    """1 / sqrt(x), rounded to nearest."""
    operand = scalar(x, "T.ieee_frsqrt")
    if operand.dtype.bits > 32:
        raise fault(
            f"T.ieee_frsqrt of {operand.dtype}",
            "ieee_frsqrt is not supported for float64",
            "T.ieee_frcp(T.ieee_fsqrt(x)), whose two roundings are 1 ulp apart from it",
        )
    return math_call("ieee_frsqrt", operand)


def _ieee(name: str, names: str) -> Callable[..., Any]:
    """An operation rounded as asked ("rn", "rz", "ru", "rd") and never contracted."""
    signature = named(names, rounding_mode="rn")

    def made(*args: Any, **given: Any) -> Expr:
        bound = signature.bind(*args, **given)
        bound.apply_defaults()
        *operands, rounding_mode = bound.args
        if rounding_mode not in ("rn", "rz", "ru", "rd"):
            raise fault(
                f"T.ieee_{name}: rounding_mode={shown(rounding_mode)}", "it is rn, rz, ru or rd", 'rounding_mode="rn"'
            )
        found = math_call(f"ieee_{name}_{rounding_mode}", *(operand(a, f"T.ieee_{name}") for a in operands))
        if rounding_mode != "rn" and found.dtype.bits < 32:
            raise fault(
                f"T.ieee_{name} of {found.dtype} with {rounding_mode}",
                "Only rounding mode 'rn' is available for half precision",
                'cast the operands to float32, or rounding_mode="rn"',
            )
        return found

    made.__name__ = made.__qualname__ = f"ieee_{name}"
    made.__signature__ = signature  # type: ignore[attr-defined]
    return made


ieee_add, ieee_sub, ieee_mul, ieee_fdiv = (_ieee(n, "xy") for n in ("add", "sub", "mul", "fdiv"))
ieee_frcp, ieee_fsqrt, ieee_fmaf = _ieee("frcp", "x"), _ieee("fsqrt", "x"), _ieee("fmaf", "xyz")
