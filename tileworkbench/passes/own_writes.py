"""Copies whose source the kernel itself may have written before: the copy engine does not see a block's ordinary stores
in the order of its statements, and copies that run ahead of their loop do not wait for an earlier trip's stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ir.effects import accesses
from ..ir.expr import Buffer, Const, Var
from ..ir.node import Node, walk
from ..ir.op import Access, Op
from ..ir.planned import Issue
from ..ir.region import distance, root
from ..ir.stmt import For, Let, Stmt, While


@dataclass(frozen=True)
class Around:
    """A loop around a statement, and what it writes to global memory."""

    loop: For | While
    writes: tuple[Access, ...]

    def reaches(self, read: Access) -> bool:
        """Whether a trip may read what an earlier one wrote."""
        mine = [w for w in self.writes if root(w.buffer) is root(read.buffer)]
        if not mine or not isinstance(self.loop, For) or not isinstance(self.loop.step, Const):
            return bool(mine)
        inner = {n.var for n in walk(self.loop.body) if isinstance(n, (For, Let))}
        inner |= {v for n in walk(self.loop.body) if isinstance(n, Op) for v in _own(n)}
        for write in mine:
            if write.region is None or read.region is None:
                return True
            trips = distance(write.region, read.region, self.loop.var, int(self.loop.step.value), independent=inner)
            if trips is not None and trips.high > 0:
                return True
        return False


def after_writes(
    body: Any, before: frozenset[Buffer] = frozenset(), loops: tuple[Around, ...] = ()
) -> dict[Op, Buffer]:
    """Operations that may read what a statement before them, or an earlier trip of a loop around them, writes to global
    memory, and the tensor."""
    found: dict[Op, Buffer] = {}
    if isinstance(body, tuple):
        for s in body:
            found |= after_writes(s, before, loops)
            before |= {root(a.buffer) for a in _writes(s)}
        return found
    if isinstance(body, Issue):
        body = body.op
    if isinstance(body, (For, While)):
        return after_writes(body.body, before, (*loops, Around(body, _writes(body))))
    if isinstance(body, Op):
        for a in body.effects():
            if a.reads and (root(a.buffer) in before or any(around.reaches(a) for around in loops)):
                found[body] = root(a.buffer)
    if isinstance(body, Node):
        for name in body._links:
            inner = getattr(body, name)
            if isinstance(inner, tuple) and any(isinstance(s, Stmt) for s in inner):
                found |= after_writes(inner, before, loops)
    return found


def _own(op: Op) -> tuple[Var, ...]:
    """The indices that an operation walks itself."""
    return tuple(v for v in getattr(op, "vars", ()) if isinstance(v, Var))


def _writes(s: Stmt) -> tuple[Access, ...]:
    return tuple(a for a in accesses(s) if a.writes and a.buffer.space == "global")
