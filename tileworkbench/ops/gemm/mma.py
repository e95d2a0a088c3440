"""Warp-level matrix products on registers: mma.sync on NVIDIA, mfma on AMD. Operands come from shared tiles (ldmatrix
where rows are 16-byte runs, vector loads otherwise) or from a fragment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir.dtype import DTYPES, DType
from ...ir.expr import Buffer, Expr, Load, cast, const
from ...ir.instr import Mma
from ...ir.op import Impl, Refusal
from ...ir.stmt import ONE, ZERO, For, Stmt, Store
from ...layout.atoms import Atom
from ...layout.tiles import accumulator, find_atoms, operand_a, operand_b
from ...target import Target
from ..context import Context, run
from .operands import cleared, load, operand_dtype, shared_layouts, unroll, widened
from .partition import partition

if TYPE_CHECKING:
    from .op import Gemm

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
            loads.append(unroll(row, count_m, (unroll(t, held_a, (Store(a, (row * held_a + t,), cast(held, wide)),)),)))
    else:
        a = ctx.registers("a_frag", count_m * held_a, op.a.buffer.dtype)
        loads += load(
            op.a, operand_a(atom, (m, atom.k), um, un), a, step * atom.k, op.transpose_a, ctx, matrices=wide is None
        )
        first_a = mi * held_a
        a = widened(a, wide, loads, ctx)
    b = ctx.registers("b_frag", count_n * held_b, op.b.buffer.dtype)
    loads += load(
        op.b, operand_b(atom, (n, atom.k), um, un), b, step * atom.k, not op.transpose_b, ctx, matrices=wide is None
    )
    b = widened(b, wide, loads, ctx)
    c = ctx.reg(op.c.buffer)
    d = run(c, (mi * count_n + ni) * held_c, held_c)
    product = Mma(atom.instruction, d, run(a, first_a, held_a), run(b, ni * held_b, held_b), d, loc=op.loc)
    body = (*loads, unroll(mi, count_m, (unroll(ni, count_n, (product,)),)))
    ctx.facts = outer
    walk: Stmt = unroll(inner, whole, body)
    if whole < steps:
        walk = For(chunk, ZERO, const(steps // whole), ONE, (walk,), "serial")
    return (*cleared(op, c, ctx), walk)
