"""The functions that a Call may name: operands, result type, rounding class and stated accuracy; one row a function.

Meaning that all rooms share: a function of float16, bfloat16 or 8-bit floats is computed in float32 and rounded once to
the operand's type; integers given to a float function become float32. `ulp32` and `ulp64` are the greatest errors, in
units of the last place, that the CUDA C++ programming guide states for the default (precise) build of the single and
double precision function: 0 is correctly rounded, None is not stated or does not exist. HIP's own tables differ by at
most a few units; its compiler takes the same names.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InternalError, LanguageError, Loc, ShapeError
from .dtype import BOOL, FLOAT32, INT32, DType
from .expr import Call, Expr, Value, as_expr, cast, number_type, promote


@dataclass(frozen=True, slots=True)
class MathFn:
    """A row. `kind` gives the types: float (floats of one type in and out), fast (float32 in and out), test (a float
    in, a truth value out), bits (an integer in, int32 out), scale (a float and an integer exponent in, the float out).
    `mode`: exact (correctly rounded, one right answer), accurate (within `ulp32`), approx (a hardware
    approximation)."""

    name: str
    arity: int
    kind: str
    mode: str
    ulp32: float | None = None
    ulp64: float | None = None
    note: str = ""


def _floats() -> list[MathFn]:
    # name, operands, units of the last place in single and in double precision
    rows: tuple[tuple[str, int, int, int], ...] = (
        ("exp", 1, 2, 1), ("exp2", 1, 2, 1), ("exp10", 1, 2, 1), ("expm1", 1, 1, 1),
        ("log", 1, 1, 1), ("log2", 1, 1, 1), ("log10", 1, 2, 1), ("log1p", 1, 1, 1),
        ("rsqrt", 1, 2, 1), ("cbrt", 1, 1, 1),
        ("sin", 1, 2, 2), ("cos", 1, 2, 2), ("tan", 1, 4, 2),
        ("asin", 1, 2, 2), ("acos", 1, 2, 2), ("atan", 1, 2, 2), ("atan2", 2, 3, 2),
        ("sinh", 1, 3, 2), ("cosh", 1, 2, 1), ("tanh", 1, 2, 1),
        ("asinh", 1, 3, 3), ("acosh", 1, 4, 3), ("atanh", 1, 3, 2),
        ("erf", 1, 2, 2), ("erfc", 1, 4, 5), ("pow", 2, 4, 2), ("hypot", 2, 3, 2),
    )  # fmt: skip
    return [MathFn(name, arity, "float", "accurate", single, double) for name, arity, single, double in rows]


def _exact() -> list[MathFn]:
    rows = (
        ("sqrt", 1, ""), ("floor", 1, ""), ("ceil", 1, ""), ("trunc", 1, ""),
        ("round", 1, "to the nearest integer, ties to even"), ("nearbyint", 1, "to the nearest integer, ties to even"),
        ("rint", 1, "to the nearest integer, ties to even"), ("fmod", 2, "the sign of the first operand"),
        ("round_away", 1, "to the nearest integer, ties away from zero"),
        ("copysign", 2, ""), ("nextafter", 2, ""), ("abs", 1, ""), ("fma", 3, "one rounding"),
        ("min", 2, "the other operand where one is NaN"), ("max", 2, "the other operand where one is NaN"),
    )  # fmt: skip
    return [MathFn(name, arity, "float", "exact", 0, 0, note) for name, arity, note in rows]


def _ieee() -> list[MathFn]:
    """Operations with a rounding mode of their own, never contracted into a fused multiply-add."""
    words = {"rn": "nearest even", "rz": "to zero", "ru": "up", "rd": "down"}
    rows = (("add", 2), ("sub", 2), ("mul", 2), ("fdiv", 2), ("frcp", 1), ("fsqrt", 1), ("fmaf", 3))
    made = [
        MathFn(f"ieee_{name}_{mode}", arity, "float", "exact", 0, 0, f"rounded {word}")
        for name, arity in rows
        for mode, word in words.items()
    ]
    return [*made, MathFn("ieee_frsqrt", 1, "fast", "exact", 0, None, "rounded nearest even")]


def _fast() -> list[MathFn]:
    rows: tuple[tuple[str, int, float | None, str], ...] = (
        ("__exp", 1, None, "2 + floor(|1.173 x|) ulp"),
        ("__exp2", 1, 2, "2 ulp, subnormals flushed"),
        ("__exp10", 1, None, "2 + floor(|2.97 x|) ulp"),
        ("__log", 1, None, "3 ulp, absolute error 2^-21.41 for x in [0.5, 2]"),
        ("__log2", 1, None, "2 ulp, absolute error 2^-22 for x in [0.5, 2]"),
        ("__log10", 1, None, "3 ulp, absolute error 2^-24 for x in [0.5, 2]"),
        ("__sin", 1, None, "absolute error 2^-21.41 for x in [-pi, pi], larger elsewhere"),
        ("__cos", 1, None, "absolute error 2^-21.19 for x in [-pi, pi], larger elsewhere"),
        ("__tan", 1, None, "the quotient of __sin and __cos"),
        ("fast_rcp", 1, 1, "1 ulp, subnormals flushed"),
        ("fast_tanh", 1, None, "relative error 2^-11"),
    )
    return [MathFn(name, arity, "fast", "approx", ulp, None, note) for name, arity, ulp, note in rows]


_OTHERS = (
    MathFn("sigmoid", 1, "float", "accurate", 4, 3, "1 / (1 + exp(-x)) as written"),
    MathFn("lgamma", 1, "float", "accurate", 6, 4, "outside [-10.001, -2.264], where the error is larger"),
    MathFn("ldexp", 2, "scale", "exact", 0, 0),
    MathFn("isnan", 1, "test", "exact"),
    MathFn("isinf", 1, "test", "exact"),
    MathFn("isfinite", 1, "test", "exact"),
    MathFn("popcount", 1, "bits", "exact", note="of the operand's own width"),
    MathFn("clz", 1, "bits", "exact", note="of the operand's own width; the width for 0"),
    MathFn("ffs", 1, "bits", "exact", note="1 + the position of the lowest set bit; 0 for 0"),
)
MATH: dict[str, MathFn] = {row.name: row for row in (*_floats(), *_exact(), *_fast(), *_ieee(), *_OTHERS)}


def math_fn(name: str) -> MathFn:
    """The row of a function; InternalError when no room gives it a meaning."""
    row = MATH.get(name)
    if row is None:
        raise InternalError(f"there is no function {name!r} in the table of mathematics")
    return row


def math_call(name: str, *args: Value, loc: Loc | None = None) -> Expr:
    """The Call of function `name`, its operands brought to the type the row asks for. LanguageError for a wrong number
    of operands, ShapeError for a type that the function does not take."""
    row = math_fn(name)
    if len(args) != row.arity:
        raise LanguageError(
            f"T.{name} got {len(args)} operand{'s' * (len(args) != 1)}",
            rule=f"T.{name} takes {row.arity} operand{'s' * (row.arity != 1)}",
            fix=f"T.{name}({', '.join('xyz'[: row.arity])})",
            loc=loc,
        )
    operands, result = _typed(row, _expressions(args), loc)
    return Call(name, operands, dtype=result, loc=loc)


def _expressions(args: tuple[Value, ...]) -> list[Expr]:
    """Python numbers take the type of the first expression beside them."""
    like = next((a.dtype for a in args if isinstance(a, Expr)), None)
    return [as_expr(a, number_type(a, like) if like is not None else None) for a in args]


def _typed(row: MathFn, args: list[Expr], loc: Loc | None) -> tuple[tuple[Expr, ...], DType]:
    if row.kind == "bits":
        if not args[0].dtype.is_int:
            raise ShapeError(
                f"T.{row.name} of {args[0].dtype}",
                rule=f"T.{row.name} counts the bits of an integer",
                fix="T.reinterpret the value as an unsigned integer first",
                loc=loc,
            )
        return tuple(args), INT32
    if row.kind == "scale":
        return (_as_float(args[0]), cast(args[1], INT32)), _as_float(args[0]).dtype
    to = args[0].dtype
    for a in args[1:]:
        to = promote(to, a.dtype)
    to = FLOAT32 if row.kind == "fast" or not to.is_float else to
    return tuple(cast(a, to) for a in args), BOOL if row.kind == "test" else to


def _as_float(a: Expr) -> Expr:
    return a if a.dtype.is_float else cast(a, FLOAT32)
