"""Copies between a fragment and a shared tile by ldmatrix and stmatrix: eight rows of 16 bytes a matrix, where a matrix
instruction's fragment would be moved in pieces of 2 or 4 bytes otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...ir.expr import Buffer, Load, cast, const
from ...ir.instr import LdMatrix, StMatrix
from ...ir.op import Impl
from ...ir.stmt import ONE, ZERO, For, Region, Stmt, Store
from ...layout import Fragment, keeps_rows, matrix_move
from ...target import Target
from ..context import Context, run
from .pairs import extent, is_whole, walked

if TYPE_CHECKING:
    from ..copy import Copy

ROW_BYTES = 16
NAMES = ("ldmatrix", "stmatrix")


def matrix_impl(op: Copy, known: Mapping[Buffer, Any], target: Target, threads: int) -> Impl | None:
    """The matrix instruction for a copy whose layouts are known; None where it does not fit or gains nothing."""
    spaces = (op.src.buffer.space, op.dst.buffer.space)
    if spaces not in (("shared", "fragment"), ("fragment", "shared")):
        return None
    load = spaces[0] == "shared"
    name = NAMES[0] if load else NAMES[1]
    held, tile = (op.dst, op.src) if load else (op.src, op.dst)
    item = tile.buffer.dtype.bytes
    if not target.has(name) or item != 2 or (load and held.buffer.dtype is not tile.buffer.dtype):
        return None
    layout, shared = known.get(held.buffer), known.get(tile.buffer)
    if not isinstance(layout, Fragment) or shared is None or not is_whole(held) or layout.rank != 2:
        return None
    if layout.threads != threads or (not load and layout.replication > 1) or not _aligned(tile, ROW_BYTES // item):
        return None
    if _wide(layout, item) or not keeps_rows(shared, tile.buffer.rank - 1, item):
        return None
    move = matrix_move(layout, 1, item)
    return Impl(name, "lsu", "warp", cost=25.0, detail={"staged": False, "move": move}) if move is not None else None


def _aligned(tile: Region, row: int) -> bool:
    """The region is two-dimensional, along the tile's last dimensions, and starts at a whole row."""
    rank = tile.buffer.rank
    start = getattr(tile.starts[-1], "value", None)
    return walked(tile) == (rank - 2, rank - 1) and start is not None and start % row == 0


def _wide(layout: Fragment, item: int) -> bool:
    """Threads hold 16 bytes in a row: ordinary accesses are as good."""
    inner = layout.reg_modes[-1] if layout.reg_modes else None
    return inner is not None and inner.dim == 1 and inner.step == 1 and inner.extent * item >= ROW_BYTES


def issue(op: Copy, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """The fragment's registers, `move.run` at a time."""
    move, load = impl.detail["move"], impl.name == NAMES[0]
    held, tile = (op.dst, op.src) if load else (op.src, op.dst)
    registers, before = ctx.reg(held.buffer), list[Stmt]()
    if not load and held.buffer.dtype is not tile.buffer.dtype:
        narrow, r = ctx.registers(f"{tile.buffer.name}_w", extent(registers.shape[0]), tile.buffer.dtype), ctx.var("r")
        change = Store(narrow, (r,), cast(Load(registers, (r,)), narrow.dtype), loc=op.loc)
        before.append(For(r, ZERO, const(narrow.shape[0]), ONE, (change,), "unroll"))
        registers = narrow
    t = ctx.var("t")
    outer = ctx.facts
    ctx.facts = ctx.facts.with_range(t, 0, move.instructions - 1)
    row, column = move.row_start(ctx.thread, t)
    place = ctx.address(tile.buffer, (*tile.starts[:-2], tile.starts[-2] + row, tile.starts[-1] + column))
    part = run(registers, t * move.run, move.run)
    made: Stmt = (
        LdMatrix(part, place, move.count, move.trans, loc=op.loc)
        if load
        else StMatrix(place, part, move.count, move.trans, loc=op.loc)
    )
    ctx.facts = outer
    return (*before, For(t, ZERO, const(move.instructions), ONE, (made,), "unroll"))
