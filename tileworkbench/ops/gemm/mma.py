"""Warp-level matrix products on registers: mma.sync on NVIDIA, mfma on AMD. Operands come from shared tiles (ldmatrix
where rows are 16-byte runs, vector loads otherwise) or from a fragment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir.dtype import DTYPES, DType
from ...ir.expr import Buffer, Expr, Load, cast, const
from ...ir.instr import Mma
from ...ir.op import Impl, Refusal
from ...ir.stmt import ONE, ZERO, For, Region, Stmt, Store
from ...layout import Fragment, permute_dims
from ...layout.atoms import Atom
from ...layout.tiles import accumulator, find_atoms, operand_a, operand_b
from ...target import Target
from ..context import Context, run
from ..copies.pairs import is_whole
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
    if any(r.buffer.space == "fragment" and not is_whole(r) for r in (op.a, op.b, op.c)):
        return Refusal(family, "a part of a fragment takes part")
    for atom in atoms:
        units = partition(m, n, warps, atom.m, atom.n, op.policy)
        if units is None or k % atom.k:
            continue
        um, un = units
        layouts: dict[Buffer, tuple[Any, ...]] = {op.c.buffer: (accumulator(atom, (m, n), um, un),)}
        operands = ((op.a, operand_a(atom, (m, k), um, un), op.transpose_a),
                    (op.b, operand_b(atom, (n, k), um, un), not op.transpose_b))  # fmt: skip
        for region, fragment, k_rows in operands:
            if region.buffer.space == "fragment":
                layouts[region.buffer] = (permute_dims(fragment, (1, 0)) if k_rows else fragment,)
            else:
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
    fixed = "fragment" in (op.a.buffer.space, op.b.buffer.space)
    whole = steps if fixed else max(n for n in range(1, MOST_STEPS + 1) if steps % n == 0)
    ctx.facts = ctx.facts.with_range(inner, 0, whole - 1).with_range(chunk, 0, steps // whole - 1)
    step: Expr = inner if whole == steps else chunk * whole + inner
    count_m, count_n = m // (um * atom.m), n // (un * atom.n)
    loads: list[Stmt] = []
    mi, ni = ctx.var("mi"), ctx.var("ni")
    wide: DType | None = impl.detail.get("wide")
    a_step, b_step = operand_a(atom, (m, atom.k), um, un), operand_b(atom, (n, atom.k), um, un)
    a, first_a = _operand(op.a, "a", a_step, (mi, count_m), (step, steps, atom.k), op.transpose_a, wide, loads, ctx)
    b, first_b = _operand(op.b, "b", b_step, (ni, count_n), (step, steps, atom.k), not op.transpose_b, wide, loads, ctx)
    c = ctx.reg(op.c.buffer)
    d = run(c, (mi * count_n + ni) * held_c, held_c)
    product = Mma(atom.instruction, d, run(a, first_a, held_a), run(b, first_b, held_b), d, loc=op.loc)
    body = (*loads, unroll(mi, count_m, (unroll(ni, count_n, (product,)),)))
    ctx.facts = outer
    walk: Stmt = unroll(inner, whole, body)
    if whole < steps:
        walk = For(chunk, ZERO, const(steps // whole), ONE, (walk,), "serial")
    return (*cleared(op, c, ctx), walk)


def _operand(
    region: Region, name: str, fragment: Fragment, along: tuple[Expr, int], walk: tuple[Expr, int, int], k_rows: bool,
    wide: DType | None, loads: list[Stmt], ctx: Context,
) -> tuple[Buffer, Expr]:  # fmt: skip
    """Registers that hold one k-step of an operand, and the first one of the instruction at `along` (index, count);
    statements that fill them are added to `loads`. `walk`: the step, how many there are, and their length."""
    (index, count), (step, steps, length) = along, walk
    held = fragment.registers // count
    if region.buffer.space != "fragment":
        made = ctx.registers(f"{name}_frag", count * held, region.buffer.dtype)
        loads += load(region, fragment, made, step * length, k_rows, ctx, matrices=wide is None)
        return widened(made, wide, loads, ctx), index * held
    source = ctx.reg(region.buffer)
    if wide is None:
        return source, (index * steps + step) * held
    made, row, t = ctx.registers(f"{name}_wide", count * held, wide), ctx.var("i"), ctx.var("t")
    value = cast(Load(source, ((row * steps + step) * held + t,)), wide)
    loads.append(unroll(row, count, (unroll(t, held, (Store(made, (row * held + t,), value),)),)))
    return made, index * held
