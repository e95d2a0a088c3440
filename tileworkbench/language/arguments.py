"""What can be said of a call's arguments before any block runs."""

from __future__ import annotations

from ..ir.expr import Binary, Cast, Compare, Const, Expr, Unary, Var
from ..ir.kernel import Kernel

# What the launcher evaluates as the device does. Divisions round down there: of sizes, that is what both kinds give.
_SUMS = ("add", "sub", "mul", "min", "max", "land", "lor")
_DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")


def of_arguments(e: Expr, kernel: Kernel) -> bool:
    """Whether an expression is integer arithmetic of the kernel's run-time sizes and integer arguments, so that the
    launcher can compute it."""
    sizes = frozenset(kernel.symbols())
    return _known(e, sizes, sizes | {scalar for scalar in kernel.scalars if scalar.dtype.is_int})


def _known(e: Expr, sizes: frozenset[Var], known: frozenset[Var]) -> bool:
    if isinstance(e, Const):
        return not isinstance(e.value, float)
    if isinstance(e, Var):
        return e in known
    if isinstance(e, Cast):
        return not e.dtype.is_float and e.dtype.bits >= e.a.dtype.bits and _known(e.a, sizes, known)
    if isinstance(e, Unary):
        return e.op in ("neg", "lnot") and _known(e.a, sizes, known)
    if isinstance(e, Compare):
        return _known(e.a, sizes, known) and _known(e.b, sizes, known)
    if not isinstance(e, Binary):
        return False
    if e.op in _DIVISIONS:
        by = isinstance(e.b, Const) and not isinstance(e.b.value, float) and e.b.value > 0
        rounded_alike = e.op.startswith("floor") or _not_negative(e.a, sizes)
        return by and rounded_alike and _known(e.a, sizes, known)
    return e.op in _SUMS and _known(e.a, sizes, known) and _known(e.b, sizes, known)


def _not_negative(e: Expr, sizes: frozenset[Var]) -> bool:
    """Sums and products of sizes."""
    if isinstance(e, Const):
        return e.value >= 0
    if isinstance(e, Binary) and e.op in ("add", "mul", "min", "max"):
        return _not_negative(e.a, sizes) and _not_negative(e.b, sizes)
    return isinstance(e, Var) and e in sizes
