"""Copies to and from global memory that the kernel itself may have written before: the copy engine does not see a
block's ordinary stores in the order of its statements, and copies that run ahead of their loop do not wait for an
earlier trip's stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..ir.effects import accesses
from ..ir.expr import Buffer, Const, Var
from ..ir.node import Node, walk
from ..ir.op import Access, ElementStmt, Op
from ..ir.planned import Issue
from ..ir.region import distance, root
from ..ir.stmt import For, Let, Stmt, Store, While

Written = tuple[Node, Access]


@dataclass(frozen=True)
class Around:
    """A loop around a statement, and what it writes to global memory, by which statements."""

    loop: For | While
    writes: tuple[Written, ...]

    def reaches(self, op: Op, touched: Access) -> bool:
        """Whether a trip may touch what another statement wrote in an earlier one."""
        own = {id(op), *(id(n) for n in walk(op))}
        found = [w for s, w in self.writes if root(w.buffer) is root(touched.buffer) and id(s) not in own]
        if not found or not isinstance(self.loop, For) or not isinstance(self.loop.step, Const):
            return bool(found)
        inner = {n.var for n in walk(self.loop.body) if isinstance(n, (For, Let))}
        inner |= {v for n in walk(self.loop.body) if isinstance(n, Op) for v in _own_indices(n)}
        for write in found:
            if write.region is None or touched.region is None:
                return True
            trips = distance(write.region, touched.region, self.loop.var, int(self.loop.step.value), independent=inner)
            if trips is not None and trips.high > 0:
                return True
        return False


def after_writes(
    body: Any, before: frozenset[Buffer] = frozenset(), loops: tuple[Around, ...] = ()
) -> dict[Op, Access]:
    """Operations that may touch what a statement before them, or an earlier trip of a loop around them, writes to
    global memory, and how they touch it: reads go before writes."""
    found: dict[Op, Access] = {}
    if isinstance(body, tuple):
        for s in body:
            found |= after_writes(s, before, loops)
            before |= {root(a.buffer) for _, a in _writes(s)}
        return found
    if isinstance(body, Issue):
        body = body.op
    if isinstance(body, (For, While)):
        return after_writes(body.body, before, (*loops, Around(body, tuple(_writes(body)))))
    if isinstance(body, Op):
        touched = [a for a in body.effects() if root(a.buffer) in before or any(o.reaches(body, a) for o in loops)]
        if touched:
            found[body] = next((a for a in touched if a.mode == "r"), touched[0])
    if isinstance(body, Node):
        for name in body._links:
            inner = getattr(body, name)
            if isinstance(inner, tuple) and any(isinstance(s, Stmt) for s in inner):
                found |= after_writes(inner, before, loops)
    return found


def _own_indices(op: Op) -> tuple[Var, ...]:
    """The indices that an operation walks itself."""
    return tuple(v for v in getattr(op, "vars", ()) if isinstance(v, Var))


def _writes(s: Stmt) -> Iterator[Written]:
    for n in walk(s):
        if isinstance(n, (Op, Store, ElementStmt)):
            for a in accesses(n):
                if a.writes and a.buffer.space == "global":
                    yield n, a
