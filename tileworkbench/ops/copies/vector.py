"""Copies by ordinary loads and stores of the threads, directly or staged in registers between issue and completion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...ir.expr import Buffer, Load, cast
from ...ir.op import Impl
from ...ir.stmt import Stmt, Store
from ..context import Context
from ..elementwise import emit_parallel
from ..loops import choose, infer, misfits_of
from ..nest import Nest
from .pairs import as_parallel, at

if TYPE_CHECKING:
    from ..copy import Copy


def nest(op: Copy) -> Nest:
    """The copy as a nest of element loops."""
    p = as_parallel(op)
    return Nest.of(p.vars, p.extents, p.body)


def vector_impl(*, staged: bool = False) -> Impl:
    """Loads and stores of the threads; always possible. `staged` keeps the tile in registers until completion."""
    cost = 100.0 if staged else 50.0
    return Impl("vector", "lsu", "thread", cost=cost, detail={"staged": staged})


def infer_layouts(op: Copy, known: Mapping[Buffer, Any], threads: int, free: bool) -> dict[Buffer, Any]:
    """Fragment layouts that follow from the known ones."""
    return infer(nest(op), known, threads, free=free, vector=op.hint("coalesced_width"), hint=op.hint("loop_layout"))


def misfits(op: Copy, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
    """Fragments that are not where the copy needs them, with the layout that it needs."""
    return misfits_of(nest(op), known, threads, vector=op.hint("coalesced_width"), hint=op.hint("loop_layout"))


def issue(op: Copy, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """The whole copy, or its loads into staging registers."""
    p = as_parallel(op)
    loop = choose(nest(op), ctx.layouts, ctx.threads, vector=op.hint("coalesced_width"), hint=op.hint("loop_layout"))
    if not impl.detail["staged"]:
        return emit_parallel(p.vars, p.extents, p.body, loop, ctx)
    stage = _stage(op, p.extents, loop, ctx)
    load = Store(stage, p.vars, Load(op.src.buffer, at(op.src, p.vars), loc=op.loc), loc=op.loc)
    return emit_parallel(p.vars, p.extents, (load,), loop, ctx)


def complete(op: Copy, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """The stores of a staged copy."""
    if not impl.detail["staged"]:
        return ()
    p = as_parallel(op)
    loop = choose(nest(op), ctx.layouts, ctx.threads, vector=op.hint("coalesced_width"), hint=op.hint("loop_layout"))
    stage = _stage(op, p.extents, loop, ctx)
    value = cast(Load(stage, p.vars, loc=op.loc), op.dst.buffer.dtype)
    return emit_parallel(p.vars, p.extents, (Store(op.dst.buffer, at(op.dst, p.vars), value, loc=op.loc),), loop, ctx)


def _stage(op: Copy, extents: tuple[Any, ...], loop: Any, ctx: Context) -> Buffer:
    """The staging registers of a copy into one buffer, as a fragment spread like its loop."""
    key = ("stage", op.dst.buffer)
    found = ctx.stages.get(key)
    if found is None:
        found = ctx.stages[key] = Buffer(f"{op.dst.buffer.name}_stage", tuple(extents), op.src.buffer.dtype, "fragment")
        ctx.layouts = {**ctx.layouts, found: loop}
    return found
