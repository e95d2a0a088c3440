"""Operands of warp-level products on their way from tiles into registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.dtype import DType
from ...ir.expr import Buffer, Const, Expr, Load, as_expr, cast, const
from ...ir.instr import LdMatrix, LoadMem
from ...ir.stmt import ONE, ZERO, For, If, Region, Stmt, Store
from ...layout import SharedLayout
from ...layout.ldmatrix import matrix_move
from ..context import Context, run

VECTOR_BYTES = 16
# float32 is multiplied in tf32. Four-bit integers stand one a byte in shared memory and registers, so that they are
# eight-bit ones there; Hopper has no matrix instruction for fewer bits.
_TAKEN_AS = {"float32": "tfloat32", "int4": "int8", "uint4": "uint8"}


def operand_dtype(buffer: Buffer) -> str:
    """The operand type of an instruction that reads this tile."""
    return _TAKEN_AS.get(buffer.dtype.name, buffer.dtype.name)


def shared_layouts(buffer: Buffer) -> tuple[Any, ...]:
    """Layouts that a warp reads without bank conflicts, best first, then plain rows."""
    shape, item = tuple(buffer.shape), buffer.dtype.bytes
    row = shape[-1] * item
    swizzled = [SharedLayout.swizzled(shape, item, span) for span in (128, 64, 32) if row % span == 0]
    return (*swizzled, SharedLayout.row_major(shape))


def widened(held: Buffer, wide: DType | None, loads: list[Stmt], ctx: Context) -> Buffer:
    """The registers as the dtype that the instruction takes."""
    if wide is None:
        return held
    made, t = ctx.registers(f"{held.name}_wide", int(held.shape[0]), wide), ctx.var("t")
    loads.append(unroll(t, int(held.shape[0]), (Store(made, (t,), cast(Load(held, (t,)), wide)),)))
    return made


def cleared(op: Any, c: Buffer, ctx: Context) -> tuple[Stmt, ...]:
    """Zeros in the accumulator where its old contents do not count."""
    if isinstance(op.clear, Const) and not op.clear.value:
        return ()
    r = ctx.var("r")
    made = unroll(r, c.shape[0], (Store(c, (r,), const(0, c.dtype), loc=op.loc),))
    return (made,) if isinstance(op.clear, Const) else (If(op.clear, (made,), loc=op.loc),)


def unroll(var: Any, count: int, body: tuple[Stmt, ...]) -> For:
    """The body `count` times, written out."""
    return For(var, ZERO, const(count), ONE, body, "unroll")


def load(
    region: Region, fragment: Any, dst: Buffer, k0: Expr, k_rows: bool, ctx: Context, *, matrices: bool = True
) -> list[Stmt]:
    """One k-step of an operand (MN, K) into registers; `k_rows`: the tile is stored (K, MN). `matrices`: its elements
    are as wide as the instruction's, so that they may come by matrix moves."""
    buffer, item = region.buffer, region.buffer.dtype.bytes
    layout = ctx.layouts[buffer]
    lead = tuple(region.starts[:-2])
    base = region.starts[-2:]

    def place(mn: Any, k: Any) -> tuple[Any, ...]:
        row, column = (k, mn) if k_rows else (mn, k)
        return (*lead, base[0] + row, base[1] + column)

    first = as_expr(base[1]) + (ZERO if k_rows else k0)

    def starts(run_length: int) -> bool:
        return ctx.facts.divides(run_length, first)

    fits = ctx.target.has("ldmatrix") and matrices and starts(VECTOR_BYTES // item)
    move = matrix_move(fragment, 0 if k_rows else 1, item) if fits else None
    t = ctx.var("t")
    outer = ctx.facts
    if move is not None and _runs(layout, VECTOR_BYTES // item, item):
        ctx.facts = ctx.facts.with_range(t, 0, move.instructions - 1)
        mn, k = move.row_start(ctx.thread, t)
        src = ctx.address(buffer, place(mn, k0 + k))
        made: Stmt = LdMatrix(run(dst, t * move.run, move.run), src, move.count, move.trans, loc=region.loc)
        count = move.instructions
    else:
        width = 1 if k_rows else _width(fragment, layout, item)
        while not starts(width):
            width //= 2
        ctx.facts = ctx.facts.with_range(t, 0, fragment.registers // width - 1)
        mn, k = fragment.coords(ctx.thread, t * width)
        made = LoadMem(run(dst, t * width, width), ctx.address(buffer, place(mn, k0 + k)), loc=region.loc)
        count = fragment.registers // width
    ctx.facts = outer
    return [unroll(t, count, (made,))]


def _runs(layout: Any, run_length: int, item: int) -> bool:
    """Every aligned run of the last dimension is contiguous and 16-byte aligned."""
    table = layout.table()
    if table.shape[-1] % run_length:
        return False
    grouped = table.reshape(*table.shape[:-1], -1, run_length)
    return bool((np.diff(grouped, axis=-1) == 1).all() and (grouped[..., 0] * item % VECTOR_BYTES == 0).all())


def _width(fragment: Any, layout: Any, item: int) -> int:
    """Registers that one access can fill: consecutive along K in the fragment and in memory."""
    inner = fragment.reg_modes[-1] if fragment.reg_modes else None
    width = inner.extent if inner is not None and inner.stride == 1 and inner.dim == 1 and inner.step == 1 else 1
    while width > 1 and (width * item > VECTOR_BYTES or not _runs_of(layout, width)):
        width //= 2
    return max(1, width)


def _runs_of(layout: Any, width: int) -> bool:
    table = layout.table()
    if table.shape[-1] % width:
        return False
    grouped = table.reshape(*table.shape[:-1], -1, width)
    return bool((np.diff(grouped, axis=-1) == 1).all() and (grouped[..., 0] % width == 0).all())
