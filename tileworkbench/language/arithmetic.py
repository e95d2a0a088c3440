"""Arithmetic, selection and conversion of scalars; Python numbers stay Python numbers where that is exact."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from ..errors import ShapeError, TargetError
from ..ir.dtype import BOOL, DType
from ..ir.expr import Expr, as_expr, binary, const, logical_not, operands, select, unary
from ..ir.expr import cast as ir_cast
from ..ir.expr import ceildiv as ir_ceildiv
from .dtypes import as_dtype
from .faults import fault, shown
from .mathfns import operand, scalar

Number = int | float


def abs(x: Any) -> Any:
    """Absolute value."""
    return unary("abs", scalar(x, "T.abs"))


def pow(x: Any, y: Any) -> Expr:
    """x to the power y."""
    return binary("pow", operand(x, "T.pow"), operand(y, "T.pow"))


def _truncated(a: Any, b: Any) -> Any:
    return builtins.abs(a) // builtins.abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _folding(op: str, name: str, text: str, python: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of two numbers that stays a Python number when both are."""

    def made(a: Any, b: Any) -> Any:
        if isinstance(a, Number) and isinstance(b, Number) and not isinstance(a, Expr) and not isinstance(b, Expr):
            return python(a, b)
        return binary(op, operand(a, f"T.{name}"), operand(b, f"T.{name}"))

    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    return made


max = _folding("max", "max", "The larger of a and b.", max)
min = _folding("min", "min", "The smaller of a and b.", min)
floordiv = _folding("floordiv", "floordiv", "Quotient rounded towards minus infinity.", lambda a, b: a // b)
floormod = _folding("floormod", "floormod", "Remainder with the sign of b.", lambda a, b: a % b)
truncdiv = _folding("truncdiv", "truncdiv", "Quotient rounded towards 0.", _truncated)
truncmod = _folding("truncmod", "truncmod", "Remainder with the sign of a.", lambda a, b: a - b * _truncated(a, b))
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


def clamp(dst: Any, min_val: Any, max_val: Any) -> Any:
    """min(max(dst, min_val), max_val)."""
    return min(max(dst, min_val), max_val)


def if_then_else(cond: Any, t: Any, f: Any) -> Any:
    """`t` where `cond`, else `f`; the side that is not taken is not evaluated."""
    if isinstance(cond, bool | int) and not isinstance(cond, Expr):
        return t if cond else f
    x, y, _ = operands(operand(t, "T.if_then_else"), operand(f, "T.if_then_else"))
    return select(scalar(cond, "T.if_then_else"), x, y)


def Select(condition: Any, true_value: Any, false_value: Any) -> Any:
    """T.if_then_else under its older name."""
    return if_then_else(condition, true_value, false_value)


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
    of = as_dtype(dtype)
    _check_rounding(of, round, sat, rbits)
    made = as_expr(value, of) if type(value) is float and not of.is_fp8 else scalar(value, "T.cast")
    return ir_cast(made, of, sat and of.is_fp8)


_ROUNDING = ("", "rn", "rz", "rp", "rm", "rs")
_INSTRUCTION = {"float16": "FP16", "bfloat16": "BF16", "float4_e2m1fn": "FP4"}


def _check_rounding(to: DType, round: Any, sat: Any, rbits: Any) -> None:
    """Refuses words that are none, and modes of rounding that no target here has."""
    what, leave = f"T.cast to {to}", "leave `round` and `rbits` out for nearest even"
    if round not in _ROUNDING:
        modes = ", ".join(map(repr, _ROUNDING))
        raise fault(f"{what}: Invalid round {shown(round)}", f"it is one of {modes}", leave)
    if not isinstance(sat, bool):
        raise fault(f"{what}: Invalid sat {shown(sat)}", "it is True or False", "True keeps the value within the range")
    if (round == "rs") != (rbits is not None):
        found = "rbits is required when round='rs'" if rbits is None else "rbits is only valid with round='rs'"
        raise fault(f"{what}: {found}", "stochastic rounding takes its random bits with each value", leave)
    if round == "rs":
        if not sat:
            raise fault(f"{what}: sat=false is not supported with round='rs'", "the instruction clamps", "leave it out")
        raise TargetError(
            f"{what}: Stochastic rounding f32-to-{_INSTRUCTION.get(to.name, 'FP8')} requires sm_100a",
            rule="it is an instruction of sm_100a, which is not built yet",
            fix=leave,
        )
    if round not in ("", "rn"):
        raise fault(f"{what}: Unsupported rounding mode {shown(round)}", "casts round to nearest even", leave)


def Cast(dtype: Any, value: Any) -> Expr:
    """T.cast with the arguments the other way round."""
    return cast(value, dtype)


def likely(cond: Any) -> Any:
    """A hint; the condition itself."""
    return cond
