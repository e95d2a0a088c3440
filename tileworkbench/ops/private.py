"""Private memory of a thread (arrays, variables) as registers: places that are constant once loops are unrolled are
read and written directly, any other place by looking through all of them, so that nothing spills to memory."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from ..ir.expr import Buffer, Expr, Load, Special, Var, as_expr, compare, const
from ..ir.node import walk
from ..ir.stmt import ONE, ZERO, For, If, Let, Region, Stmt, Store
from .context import Context

SPACES = ("local", "var")


def settled(index: Expr, flat: Set[Var]) -> bool:
    """True when the index is a constant once the loops of `flat` variables are unrolled."""
    return all(n in flat if isinstance(n, Var) else not isinstance(n, (Load, Special)) for n in walk(index))


def read(registers: Buffer, index: Expr, ctx: Context, pre: list[Stmt]) -> Expr:
    """The value at `index`; statements that find it are added to `pre`."""
    if settled(index, ctx.flat):
        return Load(registers, (index,))
    found = ctx.registers(f"{registers.name}_at", 1, registers.dtype)
    pre += _look(registers, index, ctx, lambda place: Store(found, (ZERO,), Load(registers, (place,))))
    return Load(found, (ZERO,))


def write(registers: Buffer, index: Expr, value: Expr, ctx: Context) -> tuple[Stmt, ...]:
    """Stores `value` at `index`."""
    if settled(index, ctx.flat):
        return (Store(registers, (index,), value),)
    held = ctx.var("value", value.dtype)
    bind = Let(held, value)
    return (bind, *_look(registers, index, ctx, lambda place: Store(registers, (place,), held)))


def _look(registers: Buffer, index: Expr, ctx: Context, act: object) -> tuple[Stmt, ...]:
    at, place = ctx.var("at"), ctx.var("p")
    size = registers.static_size() or 1
    chosen = If(compare("eq", at, place), (act(place),))  # type: ignore[operator]
    return (Let(at, index), For(place, ZERO, const(size), ONE, (chosen,), "unroll"))


def walks_private(s: For) -> bool:
    """True when the loop's variable is part of the place of a private element."""
    for n in walk(s.body):
        if not isinstance(n, (Load, Store, Region)) or n.buffer.space not in SPACES:
            continue
        place = n.starts if isinstance(n, Region) else n.indices
        if (n.buffer.static_size() or 1) > 1 and any(m is s.var for i in place for m in walk(i)):
            return True
    return False


def each_thread(
    loop_vars: tuple[Var, ...], extents: tuple[Any, ...], body: tuple[Stmt, ...], loc: Any
) -> tuple[Stmt, ...]:
    """The element loop as every thread runs it for itself, the last index as lanes of wide accesses."""
    kind = "vector"
    for var, extent in reversed(list(zip(loop_vars, extents, strict=True))):
        body = (For(var, ZERO, as_expr(extent), ONE, body, kind, loc=loc),)
        kind = "unroll"
    return body
