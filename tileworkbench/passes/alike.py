"""What all lanes of a vector loop do alike is done once, before the loop: reads of one place (the row that a gather
takes from a table, say) and the names of values that follow from them."""

from __future__ import annotations

from typing import Any

from ..ir.arith import mentions, substitute
from ..ir.expr import Buffer, Expr, Load, Var
from ..ir.instr import AtomicMem, LoadMem, Reg, StoreMem
from ..ir.node import Node, replace, rewrite, walk
from ..ir.region import root
from ..ir.stmt import ZERO, Let, Stmt, Store

_STRAIGHT = (LoadMem, StoreMem, AtomicMem, Store, Let)


def alike(body: tuple[Stmt, ...], lane: Var) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """(before, the rest): a straight body without what its lanes do alike, and without names for arithmetic."""
    if not all(isinstance(s, _STRAIGHT) for s in body) or any(_orders(s) for s in body):
        return (), body
    written = {b for s in body for b in _written(s)}
    changed = {root(s.dst.buffer) for s in body if isinstance(s, (StoreMem, AtomicMem))}
    before: list[Stmt] = []
    rest: list[Stmt] = []
    once: set[Buffer] = set()  # registers that hold one value for all lanes now
    values: dict[Var, Expr] = {}
    for s in body:
        s = _at_first(substitute(s, values) if values else s, once, lane)
        if (
            isinstance(s, LoadMem)
            and root(s.src.buffer) not in changed
            and _movable(s, lane, rest, body, written - once)
        ):
            once.add(s.dst.buffer)
            before.append(replace(s, dst=replace(s.dst, start=ZERO)))
            continue
        if isinstance(s, Let) and _same_for_all((s.value,), lane, rest, written - once):
            before.append(s)
            continue
        if isinstance(s, Let) and not any(isinstance(n, Load) for n in walk(s.value)):
            values[s.var] = s.value
            continue
        rest.append(s)
    return tuple(before), tuple(rest)


def _orders(s: Stmt) -> bool:
    """An atomic access that other accesses may not be moved past."""
    return isinstance(s, AtomicMem) and s.order != "relaxed"


def _written(s: Stmt) -> tuple[Buffer, ...]:
    """Registers that the statement writes, in any lane."""
    if isinstance(s, Store):
        return (s.buffer,)
    if isinstance(s, LoadMem):
        return (s.dst.buffer,)
    return (s.old.buffer,) if isinstance(s, AtomicMem) and s.old is not None else ()


def _movable(s: LoadMem, lane: Var, earlier: list[Stmt], body: tuple[Stmt, ...], written: set[Buffer]) -> bool:
    return _own_place(s.dst, lane, body) and _same_for_all((s.src.offset, s.pred, s.fill), lane, earlier, written)


def _own_place(register: Reg, lane: Var, body: tuple[Stmt, ...]) -> bool:
    """Each lane has a register of its own there, which nothing else in the loop writes or walks another way."""
    if register.count != 1 or register.start is not lane:
        return False
    named = [n for s in body for n in walk(s) if isinstance(n, (Load, Reg)) and n.buffer is register.buffer]
    if not all((n.start if isinstance(n, Reg) else n.indices[0]) is lane for n in named):
        return False
    stored = sum(isinstance(s, Store) and s.buffer is register.buffer for s in body)
    return stored + sum(isinstance(s, LoadMem) and s.dst.buffer is register.buffer for s in body) == 1


def _same_for_all(parts: tuple[Expr | None, ...], lane: Var, earlier: list[Stmt], written: set[Buffer]) -> bool:
    """True when the expressions do not depend on the lane, nor on what stays in the loop."""
    given = [e for e in parts if isinstance(e, Expr)]
    names = [s.var for s in earlier if isinstance(s, Let)]
    read = {n.buffer for e in given for n in walk(e) if isinstance(n, Load)}
    return not read & written and not any(mentions(e, (lane, *names)) for e in given)


def _at_first(s: Stmt, once: set[Buffer], lane: Var) -> Any:
    """The statement with the first lane's register wherever all lanes have one value."""
    if not once:
        return s

    def change(n: Node) -> Node:
        if isinstance(n, Load) and n.buffer in once and n.indices[0] is lane:
            return replace(n, indices=(ZERO,))
        return replace(n, start=ZERO) if isinstance(n, Reg) and n.buffer in once and n.start is lane else n

    return rewrite(s, change)
