"""Copies of consecutive bytes between global and shared memory by the copy engine, without a descriptor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...errors import InternalError
from ...ir.arith import Facts
from ...ir.instr import Bar, BarExpect, BulkLoad, BulkStore, CommitGroup, WaitGroup
from ...ir.op import Impl, Refusal
from ...ir.region import root
from ...ir.stmt import Region, Stmt
from ...layout import SharedLayout
from ...target import Target
from ..context import Context, global_offset
from .pairs import engine_refusal, extent, stays_inside, walked

if TYPE_CHECKING:
    from ..copy import Copy

NAME = "bulk"
UNIT = 16  # bytes: sizes and places are multiples of it


def bulk_impl(op: Copy, facts: Facts, target: Target) -> Impl | Refusal:
    """A copy of one run of bytes in either direction, or the reason why not."""
    load = op.src.buffer.space == "global"
    far, near = (op.src, op.dst) if load else (op.dst, op.src)
    reason = engine_refusal(op, target, "bulk_copy", "bulk copies") or _refusal(far, near, facts)
    if reason:
        return Refusal(NAME, reason)
    size = math.prod(extent(e) for e in near.extents) * near.buffer.dtype.bytes
    return Impl(
        NAME,
        "tma",
        "thread",
        "bytes" if load else "group",
        layouts={near.buffer: (SharedLayout.row_major(tuple(extent(e) for e in near.buffer.shape)),)},
        proxies={near.buffer: "async"},
        cost=4.0,
        bytes=size,
        detail={"load": load},
    )


def _refusal(far: Region, near: Region, facts: Facts) -> str:
    item = far.buffer.dtype.bytes
    if far.buffer.dtype is not near.buffer.dtype:
        return f"it cannot convert {far.buffer.dtype} to {near.buffer.dtype}"
    if not all(isinstance(extent(e), int) for e in (*far.extents, *near.extents)):
        return "its size is not known while compiling"
    for region in (far, near):
        if len(walked(region)) > 1 or (walked(region) and walked(region)[0] != region.buffer.rank - 1):
            return f"`{region.buffer.name}` is not walked along its last dimension alone"
    if far.buffer.strides and extent(far.buffer.strides[-1]) != 1:
        return f"the last dimension of `{far.buffer.name}` is not contiguous"
    size = math.prod(extent(e) for e in near.extents) * item
    if size % UNIT:
        return f"{size} B are not a multiple of {UNIT} B"
    if not facts.starts_at(UNIT, root(far.buffer)):
        return f"`{far.buffer.name}` may start elsewhere than at a multiple of {UNIT} B"
    run = max(1, UNIT // item)
    if not facts.divides(run, global_offset(far.buffer, far.starts)):
        return f"its place in `{far.buffer.name}` is not surely a multiple of {UNIT} B"
    if not facts.divides(run, global_offset(near.buffer, near.starts)):
        return f"its place in `{near.buffer.name}` is not surely a multiple of {UNIT} B"
    leaves = next((region for region in (far, near) if not stays_inside(region, facts)), None)
    return f"it may leave `{leaves.buffer.name}`" if leaves is not None else ""


def issue(op: Copy, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """One instruction of one thread."""
    load = impl.detail["load"]
    far, near = (op.src, op.dst) if load else (op.dst, op.src)
    place, other = ctx.address(near.buffer, near.starts), ctx.address(far.buffer, far.starts)
    if not load:
        return ctx.elect(BulkStore(other, place, impl.bytes, loc=op.loc), CommitGroup("bulk", loc=op.loc))
    bar, made = ctx.bar, list[Stmt]()
    if op.barrier is not None:
        bar = Bar(op.barrier.buffer, ctx.facts.simplify(op.barrier.starts[0]))
        made.append(BarExpect(bar, impl.bytes, "the kernel's copy counts on it", loc=op.loc))
    if bar is None:
        raise InternalError("a bulk load outside a channel", loc=op.loc)
    return ctx.elect(*made, BulkLoad(place, other, impl.bytes, bar, loc=op.loc))


def complete(op: Copy, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """A store's source may be overwritten after this, and what it wrote be touched where another statement does so; a
    load is waited for through its channel."""
    if impl.detail["load"]:
        return ()
    return ctx.elect(WaitGroup("bulk", 0, reads_only=op.dst.buffer not in ctx.touched_again, loc=op.loc))
