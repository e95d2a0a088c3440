"""Copies from global to shared memory by cp.async: each thread moves runs of 4, 8 or 16 bytes past its registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.arith import Facts
from ...ir.expr import Buffer, Const, Expr, Value, as_expr, const, select
from ...ir.instr import CopyAsync
from ...ir.op import Impl, Refusal
from ...ir.region import root
from ...ir.stmt import ONE, ZERO, For, If, Stmt
from ...layout import loop_layout
from ...target import Target
from ..context import Context, global_offset
from .pairs import PACKED, at, extent, stays_inside, walked

if TYPE_CHECKING:
    from ..copy import Copy


def cp_async_impl(op: Copy, facts: Facts, target: Target) -> Impl | Refusal:
    """cp.async when the run that every thread moves is aligned on both sides."""
    name = "cp.async"
    src, dst = op.src.buffer, op.dst.buffer
    if (src.space, dst.space) != ("global", "shared"):
        return Refusal(name, f"it moves global to shared memory, not {src.space} to {dst.space}")
    if not target.has("cp_async"):
        return Refusal(name, f"{target.name} has no cp.async")
    if src.dtype is not dst.dtype:
        return Refusal(name, f"it cannot convert {src.dtype} to {dst.dtype}")
    if src.dtype.is_packed:
        return Refusal(name, PACKED.format(src.name))
    dims = walked(op.dst)
    if not dims or walked(op.src)[-1] != src.rank - 1 or dims[-1] != dst.rank - 1:
        return Refusal(name, "the last dimension is not the one that is walked")
    inner = extent(op.dst.extents[-1])
    for nbytes in (16, 8, 4):
        run = nbytes // src.dtype.bytes
        if run and isinstance(inner, int) and inner % run == 0 and _aligned(op, run, facts):
            zeros = None if stays_inside(op.src, facts) else src
            detail = {"bytes": nbytes, "run": run}
            return Impl(f"cp.async {nbytes} B", "lsu", "thread", "group", cost=20.0, zeros=zeros, detail=detail)
    return Refusal(name, f"rows of `{src.name}` are not known to start at a multiple of 4 bytes")


def fitted(op: Copy, impl: Impl, known: Mapping[Buffer, Any]) -> Impl | None:
    """The implementation with runs that the tile's layout keeps in one piece; None when it keeps none of 4 bytes."""
    layout, item = known.get(op.dst.buffer), op.src.buffer.dtype.bytes
    if layout is None:
        return impl
    for nbytes in (16, 8, 4):
        run = nbytes // item
        if nbytes <= impl.detail["bytes"] and run and _kept(layout, run):
            return replace(impl, name=f"cp.async {nbytes} B", detail={"bytes": nbytes, "run": run})
    return None


@cache
def _kept(layout: Any, run: int) -> bool:
    """Every aligned run of the last dimension lies in one piece at a multiple of its length."""
    rows = layout.table().reshape(-1, layout.shape[-1])
    if rows.shape[1] % run:
        return False
    runs = rows.reshape(-1, run)
    return bool((np.diff(runs, axis=1) == 1).all()) and not (runs[:, 0] % run).any()


def _aligned(op: Copy, run: int, facts: Facts) -> bool:
    """Every run starts at a multiple of its length on both sides, and lies wholly inside or outside the tensor."""
    src = op.src.buffer
    if not facts.divides(run, op.dst.starts[-1]):
        return False
    if not facts.starts_at(run * src.dtype.bytes, root(src)):
        return False
    if not facts.divides(run, as_expr(global_offset(src, op.src.starts))):
        return False
    strides = src.strides or ()
    if strides and (extent(strides[-1]) != 1 or not all(facts.divides(run, as_expr(s)) for s in strides[:-1])):
        return False
    if not strides and src.rank > 1 and not facts.divides(run, as_expr(src.shape[-1])):
        return False
    inside = facts.prove(as_expr(op.src.starts[-1]) + op.src.extents[-1] <= src.shape[-1])
    whole_runs = facts.divides(run, as_expr(src.shape[-1])) and facts.divides(run, op.src.starts[-1])
    return inside is True or whole_runs


def issue(op: Copy, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """One cp.async per run; runs outside the tensor arrive as zeros."""
    shape = tuple(extent(op.dst.extents[d]) for d in walked(op.dst))
    loop = loop_layout(shape, ctx.threads, impl.detail["run"])
    extents = loop.reg_extents
    has_lane = impl.detail["run"] > 1
    steps = extents[:-1] if has_lane else extents
    digits = tuple(ctx.var("r") for _ in steps)
    outer = ctx.facts
    for digit, n in zip(digits, steps, strict=True):
        ctx.facts = ctx.facts.with_range(digit, 0, n - 1)
    indices: tuple[Value, ...] = (*digits, 0) if has_lane else digits
    coords = tuple(ctx.facts.simplify(as_expr(c)) for c in loop.coordinate(ctx.thread, indices))
    src = tuple(ctx.coordinate(i) for i in at(op.src, coords))  # type: ignore[arg-type]
    dst = at(op.dst, coords)  # type: ignore[arg-type]
    inside = ctx.inside(op.src.buffer, src)
    nbytes = impl.detail["bytes"]
    valid = None if isinstance(inside, Const) and inside.value else select(inside, const(nbytes), ZERO)
    body: tuple[Stmt, ...] = (
        CopyAsync(ctx.address(op.dst.buffer, dst), ctx.address(op.src.buffer, src), nbytes, valid, loc=op.loc),
    )
    for part in loop.guards(ctx.thread, indices):
        guard: Expr = ctx.facts.simplify(as_expr(part))
        body = body if isinstance(guard, Const) and guard.value else (If(guard, body),)
    if loop.threads < ctx.threads:
        body = (If(ctx.thread < loop.threads, body),)
    for digit, n in reversed(list(zip(digits, steps, strict=True))):
        body = (For(digit, ZERO, const(n), ONE, body, "unroll"),)
    ctx.facts = outer
    return body
