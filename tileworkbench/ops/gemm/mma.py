"""Warp-level matrix products on registers: mma.sync on NVIDIA, mfma on AMD. Operands come from shared tiles (ldmatrix
where rows are 16-byte runs, vector loads otherwise) or from a fragment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.dtype import DTYPES, DType
from ...ir.expr import Buffer, Const, Expr, Load, cast, const
from ...ir.instr import LdMatrix, LoadMem, Mma
from ...ir.op import Impl, Refusal
from ...ir.stmt import ONE, ZERO, For, If, Region, Stmt, Store
from ...layout import SharedLayout
from ...layout.atoms import Atom
from ...layout.ldmatrix import matrix_move
from ...layout.tiles import accumulator, find_atoms, operand_a, operand_b
from ...target import Target
from ..context import Context, run
from .operands import operand_dtype
from .partition import partition

if TYPE_CHECKING:
    from .op import Gemm

VECTOR_BYTES = 16
MOST_STEPS = 8  # instructions along K that are written out


def mma_impl(op: Gemm, target: Target, warps: int) -> Impl | Refusal:
    """The greatest instruction that fits the tile, with the layouts it needs."""
    family = "mfma" if target.has("mfma") else "mma"
    m, n, k = op.mnk
    names = [operand_dtype(b.buffer) for b in (op.a, op.b)]
    accum = op.c.buffer.dtype.name
    atoms, wide = find_atoms(target.name, *names, accum, family), None
    if not atoms and all(b.buffer.dtype.is_float and b.buffer.dtype.bits == 8 for b in (op.a, op.b)):
        # Eight-bit floats are exact in float16, and so are their products in the accumulator.
        atoms, wide = find_atoms(target.name, "float16", "float16", accum, family), DTYPES["float16"]
    if not atoms:
        return Refusal(family, f"{target.name} has no {family} of {names[0]} and {names[1]} into {accum}")
    if op.b.buffer.space == "fragment":
        return Refusal(family, f"B `{op.b.buffer.name}` is a fragment; copy it to a shared tile")
    for atom in atoms:
        units = partition(m, n, warps, atom.m, atom.n, op.policy)
        if units is None or k % atom.k:
            continue
        um, un = units
        layouts: dict[Buffer, tuple[Any, ...]] = {op.c.buffer: (accumulator(atom, (m, n), um, un),)}
        if op.a.buffer.space == "fragment":
            layouts[op.a.buffer] = (operand_a(atom, (m, k), um, un),)
        for region in (op.a, op.b):
            if region.buffer.space == "shared":
                layouts[region.buffer] = shared_layouts(region.buffer)
        name = f"{family} m{atom.m}n{atom.n}k{atom.k}{' of float16' if wide else ''}"
        detail = {"atom": atom, "units": units, "wide": wide}
        return Impl(name, "tensor", "warp", layouts=layouts, cost=m * n * k / 1024, detail=detail)
    shapes = ", ".join(f"m{a.m}n{a.n}k{a.k}" for a in atoms)
    return Refusal(family, f"a {m}×{n}×{k} tile on {warps} warps is not made of whole {shapes}")


def shared_layouts(buffer: Buffer) -> tuple[Any, ...]:
    """Layouts that a warp reads without bank conflicts, best first, then plain rows."""
    shape, item = tuple(buffer.shape), buffer.dtype.bytes
    row = shape[-1] * item
    swizzled = [SharedLayout.swizzled(shape, item, span) for span in (128, 64, 32) if row % span == 0]
    return (*swizzled, SharedLayout.row_major(shape))


def issue(op: Gemm, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """For each k-step: both operands into registers, then every instruction of the warp's part of C."""
    atom: Atom = impl.detail["atom"]
    um, un = impl.detail["units"]
    m, n, k = op.mnk
    held_a, held_b, held_c = (f.registers for f in atom.fragments())
    inner, chunk = ctx.var("kk"), ctx.var("kc")
    outer = ctx.facts
    # A fragment's registers are found by constants; from shared tiles a long walk along K stays a loop.
    steps = k // atom.k
    whole = steps if op.a.buffer.space == "fragment" else max(n for n in range(1, MOST_STEPS + 1) if steps % n == 0)
    ctx.facts = ctx.facts.with_range(inner, 0, whole - 1).with_range(chunk, 0, steps // whole - 1)
    step: Expr = inner if whole == steps else chunk * whole + inner
    count_m, count_n = m // (um * atom.m), n // (un * atom.n)
    loads: list[Stmt] = []
    mi, ni = ctx.var("mi"), ctx.var("ni")
    wide: DType | None = impl.detail.get("wide")
    if op.a.buffer.space == "fragment":
        a = ctx.reg(op.a.buffer)
        first_a: Expr = (mi * (k // atom.k) + step) * held_a
        if wide is not None:
            row, t = ctx.var("mi"), ctx.var("t")
            held = Load(a, ((row * (k // atom.k) + step) * held_a + t,))
            a, first_a = ctx.registers("a_wide", count_m * held_a, wide), mi * held_a
            loads.append(
                _unroll(row, count_m, (_unroll(t, held_a, (Store(a, (row * held_a + t,), cast(held, wide)),)),))
            )
    else:
        a = ctx.registers("a_frag", count_m * held_a, op.a.buffer.dtype)
        loads += _load(
            op.a, operand_a(atom, (m, atom.k), um, un), a, step * atom.k, op.transpose_a, ctx, matrices=wide is None
        )
        first_a = mi * held_a
        a = _widened(a, wide, loads, ctx)
    b = ctx.registers("b_frag", count_n * held_b, op.b.buffer.dtype)
    loads += _load(
        op.b, operand_b(atom, (n, atom.k), um, un), b, step * atom.k, not op.transpose_b, ctx, matrices=wide is None
    )
    b = _widened(b, wide, loads, ctx)
    c = ctx.reg(op.c.buffer)
    d = run(c, (mi * count_n + ni) * held_c, held_c)
    product = Mma(atom.instruction, d, run(a, first_a, held_a), run(b, ni * held_b, held_b), d, loc=op.loc)
    body = (*loads, _unroll(mi, count_m, (_unroll(ni, count_n, (product,)),)))
    ctx.facts = outer
    walk: Stmt = _unroll(inner, whole, body)
    if whole < steps:
        walk = For(chunk, ZERO, const(steps // whole), ONE, (walk,), "serial")
    return (*_cleared(op, c, ctx), walk)


def _widened(held: Buffer, wide: DType | None, loads: list[Stmt], ctx: Context) -> Buffer:
    """The registers as the dtype that the instruction takes."""
    if wide is None:
        return held
    made, t = ctx.registers(f"{held.name}_wide", int(held.shape[0]), wide), ctx.var("t")
    loads.append(_unroll(t, int(held.shape[0]), (Store(made, (t,), cast(Load(held, (t,)), wide)),)))
    return made


def _cleared(op: Gemm, c: Buffer, ctx: Context) -> tuple[Stmt, ...]:
    """Zeros in the accumulator where its old contents do not count."""
    if isinstance(op.clear, Const) and not op.clear.value:
        return ()
    r = ctx.var("r")
    made = _unroll(r, c.shape[0], (Store(c, (r,), const(0, c.dtype), loc=op.loc),))
    return (made,) if isinstance(op.clear, Const) else (If(op.clear, (made,), loc=op.loc),)


def _unroll(var: Any, count: int, body: tuple[Stmt, ...]) -> For:
    return For(var, ZERO, const(count), ONE, body, "unroll")


def _load(
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

    fits = ctx.target.has("ldmatrix") and matrices
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
        ctx.facts = ctx.facts.with_range(t, 0, fragment.registers // width - 1)
        mn, k = fragment.coords(ctx.thread, t * width)
        made = LoadMem(run(dst, t * width, width), ctx.address(buffer, place(mn, k0 + k)), loc=region.loc)
        count = fragment.registers // width
    ctx.facts = outer
    return [_unroll(t, count, (made,))]


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
