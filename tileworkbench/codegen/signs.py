"""A cheap proof that an integer expression is not negative, so that floor and truncating division agree."""

from __future__ import annotations

from ..ir.expr import Binary, Cast, Const, Expr, Select, Special, Var

_CLOSED = frozenset({"add", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "min", "or", "xor", "shl", "shr"})


def non_negative(e: Expr, known: set[Var]) -> bool:
    """True when `e` is certainly ≥ 0, given the variables `known` to be. Overflow is not considered: offsets that
    overflow are wrong with any sign."""
    if e.dtype.kind in ("uint", "bool") or isinstance(e, Special):
        return True
    if isinstance(e, Const):
        return e.value >= 0
    if isinstance(e, Var):
        return e in known
    if isinstance(e, Cast):
        return _widens(e) and non_negative(e.a, known)
    if isinstance(e, Select):
        return non_negative(e.a, known) and non_negative(e.b, known)
    return isinstance(e, Binary) and _binary(e, known)


def _widens(e: Cast) -> bool:
    if e.a.dtype.kind == "int":
        return e.a.dtype.bits <= e.dtype.bits
    return e.a.dtype.kind in ("uint", "bool") and (e.a.dtype.kind == "bool" or e.a.dtype.bits < e.dtype.bits)


def _binary(e: Binary, known: set[Var]) -> bool:
    a, b = non_negative(e.a, known), non_negative(e.b, known)
    if e.op in ("max", "and"):
        return a or b
    if e.op == "floormod":
        return b  # the sign of the divisor
    return e.op in _CLOSED and a and b
