"""Parallel loops that bring elements of a tensor into a shared tile, its place found row by row (gathers, images as
columns), by cp.async: what lets them run ahead of their loop as copies do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...ir.arith import Facts, coefficient, mentions, substitute
from ...ir.expr import Const, Expr, Load, Select, as_expr, const
from ...ir.node import walk
from ...ir.op import Impl
from ...ir.region import root
from ...ir.stmt import ZERO, Let, Region, Store, whole
from ...target import Target
from ..context import global_offset

if TYPE_CHECKING:
    from ..parallel import Parallel


@dataclass(frozen=True)
class Rows:
    """What such a loop moves: `src` from its element's place, where `cond` holds, else 0; `dst` is the whole tile."""

    src: Region
    dst: Region
    cond: Expr


def rows(op: Parallel) -> Rows | None:
    """The loop as a copy; None when it is more than that."""
    if not op.body or not isinstance(op.body[-1], Store) or not all(isinstance(s, Let) for s in op.body[:-1]):
        return None
    store = op.body[-1]
    value, indices = store.value, store.indices
    for s in reversed(op.body[:-1]):
        value, indices = (substitute(x, {s.var: s.value}) for x in (value, indices))  # type: ignore[attr-defined]
    cond: Expr = const(True)
    if isinstance(value, Select) and isinstance(value.b, Const) and value.b.value == 0:
        cond, value = value.cond, value.a
    if not isinstance(value, Load) or (value.buffer.space, store.buffer.space) != ("global", "shared"):
        return None
    dtype = store.buffer.dtype
    if value.buffer.dtype is not dtype or dtype.is_packed or not op.nest().covers(store):
        return None
    read = (n.buffer.space for e in (*value.indices, cond) for n in walk(e) if isinstance(n, Load))
    if any(space not in ("global", "var") for space in read):
        return None
    return Rows(Region(value.buffer, value.indices, (1,) * value.buffer.rank), whole(store.buffer), cond)


def rows_impl(op: Parallel, facts: Facts, target: Target) -> Impl | None:
    """cp.async of aligned runs along the loop's last dimension; None where it has none of 4 bytes."""
    found = rows(op)
    if found is None or not target.has("cp_async"):
        return None
    src, lane, extent = found.src.buffer, op.vars[-1], op.extents[-1]
    for v, n in zip(op.vars, op.extents, strict=True):
        if not isinstance(n, int):
            return None
        facts = facts.with_range(v, 0, n - 1)
    *others, last = (facts.simplify(i) for i in found.src.starts)
    if coefficient(last, lane) != 1 or any(mentions(e, (lane,)) for e in (*others, facts.simplify(found.cond))):
        return None
    strides = src.strides or ()
    if strides and not (isinstance(strides[-1], int) and strides[-1] == 1):
        return None
    first = facts.simplify(substitute(last, {lane: ZERO}))
    offset = facts.simplify(global_offset(src, (*others, first)))
    for nbytes in (16, 8, 4):
        run = nbytes // src.dtype.bytes
        if not run or extent % run or not facts.divides(run, offset) or not facts.starts_at(nbytes, root(src)):
            continue
        inside = facts.prove(first + (extent - 1) < src.shape[-1]) is True and facts.prove(first >= 0) is True
        if inside or (facts.divides(run, first) and facts.divides(run, as_expr(src.shape[-1]))):
            return Impl(f"cp.async rows {nbytes} B", "lsu", "thread", "group", cost=20.0)
    return None
