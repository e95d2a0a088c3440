"""Building expressions: common types, folding. Constants fold at once, neutral elements vanish."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import ShapeError
from .constants import Number, as_expr, const, fp8
from .dtype import BOOL, FLOAT32, INT32, DType
from .operators import Operators
from .terms import Binary, Cast, Compare, Const, Expr, Select, Unary, Value

_Fold = Callable[[Any, Any], Number]


def promote(a: DType, b: DType) -> DType:
    """The common type of two operands: floats win over integers, then the wider one, then the unsigned one."""
    if a is b:
        return a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    if a.is_float:
        return FLOAT32  # fp16 with bf16
    return a if a.is_int and (b is BOOL or a.kind == "uint") else b


def number_type(value: Value, beside: DType) -> DType | None:
    """The type that a Python number takes beside a value, if it can hold it: the value's, but a number of the same kind
    has 32 bits at least. So an int8 times 2 is an int32, a float16 times 0.5 a float32, times 2 a float16."""
    return beside if beside.bits >= 32 or (beside.is_float and not isinstance(value, float)) else None


def operands(a: Value, b: Value) -> tuple[Expr, Expr, DType]:
    """Both operands brought to their common type."""
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype is b.dtype and not a.dtype.is_packed:
        return a, b, a.dtype
    x = as_expr(a, number_type(a, b.dtype) if isinstance(b, Expr) else None)
    y = as_expr(b, number_type(b, x.dtype))
    to = promote(x.dtype, y.dtype)
    if to.is_packed:  # storage alone: there is no arithmetic in fewer bits than a byte has
        to = FLOAT32 if to.is_float else INT32
    return cast(x, to), cast(y, to), to


def cast(a: Expr, to: DType, saturate: bool | None = None) -> Expr:
    """`a` converted to `to`; `a` itself when it has that type already. `saturate`: None for what the type does."""
    if a.dtype is to:
        return a
    saturate = to.is_fp8 if saturate is None else saturate
    if isinstance(a, Const) and not (to.is_int and isinstance(a.value, float) and not math.isfinite(a.value)):
        if to.is_fp8:
            return Const(fp8(a.value, to, saturate), dtype=to)
        return const(int(a.value) if to.is_int else a.value, to)
    if to.is_int and to.is_packed and a.dtype.is_float:
        a = Cast(a, dtype=INT32, saturate=saturate, loc=a.loc)
    return Cast(a, dtype=to, saturate=saturate, loc=a.loc)


FOLD: dict[str, _Fold] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y,
    "floormod": lambda x, y: x % y,
    "truncdiv": lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
    "truncmod": lambda x, y: abs(x) % abs(y) * (-1 if x < 0 else 1),
    "min": min,
    "max": max,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "shl": lambda x, y: x << y,
    "shr": lambda x, y: x >> y,
    "land": lambda x, y: bool(x) and bool(y),
    "lor": lambda x, y: bool(x) or bool(y),
}
COMPARE: dict[str, _Fold] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}
_UNARY: dict[str, Callable[[Number], Number]] = {"neg": lambda v: -v, "abs": abs, "not": lambda v: ~int(v)}
# Operations as the user writes them, for messages.
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "floormod": "%", "pow": "**", "and": "&",
    "or": "|",
    "xor": "^", "shl": "<<", "shr": ">>", "matmul": "@", "pos": "+", "neg": "-", "invert": "~", "eq": "==", "ne": "!=",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "not_in": "not in", "is_not": "is not",
}  # fmt: skip
_DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")


def binary(op: str, a: Value, b: Value) -> Expr:
    """`a op b` in the common type; integer constants fold, neutral elements vanish."""
    x, y, to = operands(a, b)
    loc = x.loc or y.loc
    if op == "div" and not to.is_float:
        x, y, to = cast(x, FLOAT32), cast(y, FLOAT32), FLOAT32
    if op in ("and", "or", "xor", "shl", "shr", *_DIVISIONS) and to.is_float:
        raise ShapeError(
            f"`{SYMBOLS.get(op, op)}` on {to}",
            rule="bit and integer-division operators take integers",
            fix="cast both sides to int32, or use `/`",
            loc=loc,
        )
    if op in ("shl", "shr") and isinstance(y, Const) and y.value < 0:
        raise ShapeError(
            f"a shift by {y.value}", rule="shift counts are not negative", fix="shift the other way", loc=loc
        )
    if op in _DIVISIONS and isinstance(y, Const) and y.value == 0:
        raise ShapeError(
            "division by the constant zero", rule="the divisor is not 0", fix="check the value of the divisor", loc=loc
        )
    if isinstance(x, Const) and isinstance(y, Const) and not to.is_float:
        if op in ("shl", "shr"):
            return _shift(op, x, y, to)
        if op in FOLD:
            return const(FOLD[op](x.value, y.value), to)
    if to.is_int:
        if isinstance(y, Const):
            if (y.value == 0 and op in ("add", "sub", "or", "xor", "shl", "shr")) or (
                y.value == 1 and op in ("mul", "floordiv", "truncdiv")
            ):
                return x
            if (y.value == 0 and op in ("mul", "and")) or (y.value == 1 and op in ("floormod", "truncmod")):
                return const(0, to)
        if isinstance(x, Const):
            if (x.value == 0 and op in ("add", "or", "xor")) or (x.value == 1 and op == "mul"):
                return y
            if x.value == 0 and op in ("mul", "and", "shl", "shr", *_DIVISIONS):
                return const(0, to)
    return Binary(op, x, y, dtype=to, loc=loc)


def _shift(op: str, x: Const, y: Const, to: DType) -> Expr:
    """Python's shift; more places than the type has bits give what all its bits gone would give."""
    return const(FOLD[op](x.value, min(int(y.value), to.bits)), to)


def compare(op: str, a: Value, b: Value) -> Expr:
    """The truth of `a op b` in the common type; op: eq ne lt le gt ge."""
    x, y, _ = operands(a, b)
    if isinstance(x, Const) and isinstance(y, Const):
        return const(COMPARE[op](x.value, y.value), BOOL)
    return Compare(op, x, y, loc=x.loc or y.loc)


def logical(op: str, a: Value, b: Value) -> Expr:
    """`land` or `lor` of two truth values; b is evaluated only if a does not decide."""
    x, y = truth(a), truth(b)
    absorbing = op == "lor"
    if isinstance(x, Const):
        return x if bool(x.value) == absorbing else y
    if isinstance(y, Const):
        return y if bool(y.value) == absorbing else x
    return Binary(op, x, y, dtype=BOOL, loc=x.loc or y.loc)


def truth(a: Value) -> Expr:
    """`a` as a bool: nonzero is true."""
    x = as_expr(a)
    return x if x.dtype is BOOL else compare("ne", x, const(0, x.dtype))


def logical_not(a: Value) -> Expr:
    """Whether `a` is zero."""
    x = truth(a)
    return const(not x.value, BOOL) if isinstance(x, Const) else Unary("lnot", x, dtype=BOOL, loc=x.loc)


def unary(op: str, a: Value) -> Expr:
    """neg, abs or not (bitwise) of a value."""
    x = as_expr(a)
    if isinstance(x, Const) and op in _UNARY:
        return const(_UNARY[op](x.value), x.dtype)
    return Unary(op, x, dtype=x.dtype, loc=x.loc)


def select(cond: Value, a: Value, b: Value) -> Expr:
    """`a` where `cond`, else `b`, in their common type."""
    c = truth(cond)
    x = as_expr(a, b.dtype if isinstance(b, Expr) else None)  # a number is either side's value, in its type
    x, y, to = operands(x, as_expr(b, x.dtype))
    if isinstance(c, Const):
        return x if c.value else y
    return Select(c, x, y, dtype=to, loc=c.loc)


def minimum(a: Value, b: Value) -> Expr:
    """The lesser of two values, in their common type."""
    return binary("min", a, b)


def maximum(a: Value, b: Value) -> Expr:
    """The greater of two values, in their common type."""
    return binary("max", a, b)


def ceildiv(a: Value, b: Value) -> Expr:
    """The quotient rounded up, for divisors of either sign."""
    x, y, to = operands(a, b)
    if isinstance(y, Const) and to.is_int and y.value != 0:
        if isinstance(x, Const):
            return const(-(-x.value // y.value), to)
        if y.value < 0:
            return unary("neg", binary("floordiv", x, -y.value))
        if to.bits >= 32:
            return binary("floordiv", binary("add", x, y.value - 1), y)
    if to.kind != "int":
        return binary("floordiv", binary("add", x, binary("sub", y, 1)), y)
    return unary("neg", binary("floordiv", unary("neg", x), y))


Operators._binary = staticmethod(binary)
Operators._compare = staticmethod(compare)
Operators._unary = staticmethod(unary)
Operators._logical_not = staticmethod(logical_not)
Operators._cast = staticmethod(cast)
