"""Warp-level products of a sparse first operand (mma.sp): metadata comes from its shared tile with ordinary loads, a
few bytes a lane and step, the other operands as for the dense instruction or from fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir.dtype import DTYPES, DType
from ...ir.expr import Buffer, Expr, Load, cast, const
from ...ir.instr import MmaSparse
from ...ir.op import Impl, Refusal
from ...ir.stmt import ONE, ZERO, For, Region, Stmt, Store
from ...layout import metadata, metadata_elements, mma_sp_atoms, permute_dims
from ...layout.atoms import BITS, Atom
from ...layout.tiles import accumulator, find_atoms, operand_a, operand_b
from ...target import Target
from ..context import Context, run
from .metadata import metadata_words
from .mma import MOST_STEPS
from .operands import cleared, load, operand_dtype, shared_layouts, unroll, widened
from .partition import partition

if TYPE_CHECKING:
    from .sparse import GemmSparse

NAME = "mma.sp"


def sparse_impl(op: GemmSparse, target: Target, warps: int) -> Impl | Refusal:
    """The instruction of these dtypes with the layouts it needs, or the reason why there is none."""
    m, n, k = op.mnk
    names = [operand_dtype(r.buffer) for r in (op.a, op.b)]
    accum = op.c.buffer.dtype.name
    atoms, wide = find_atoms(target.name, *names, accum, NAME), None
    if all(r.buffer.dtype.is_float and r.buffer.dtype.bits == 8 for r in (op.a, op.b)) and not _has_float8(target):
        # Eight-bit floats are exact in float16, and so are their products in the accumulator.
        atoms, wide = find_atoms(target.name, "float16", "float16", accum, NAME), DTYPES["float16"]
    reason = "" if atoms else f"no {NAME} of {names[0]} and {names[1]} into {accum}; there is {_list(target)}"
    reason = reason or _places(op)
    if reason:
        return Refusal(NAME, reason)
    atom = atoms[0]
    units = partition(m, n, warps, atom.m, atom.n, op.policy)
    if units is None or k % atom.k:
        return Refusal(NAME, f"a {m}×{n}×{k} tile on {warps} warps is not made of whole m{atom.m}n{atom.n}k{atom.k}")
    layouts: dict[Buffer, tuple[Any, ...]] = {op.c.buffer: (accumulator(atom, (m, n), *units),)}
    whole_a, whole_b = operand_a(atom, (m, atom.stored_k * (k // atom.k)), *units), operand_b(atom, (n, k), *units)
    for region, fragment, turned in ((op.a, whole_a, op.transpose_a), (op.b, whole_b, not op.transpose_b)):
        held = region.buffer.space == "fragment"
        wanted = (permute_dims(fragment, (1, 0)) if turned else fragment,)
        layouts[region.buffer] = wanted if held else shared_layouts(region.buffer)
    name = f"{NAME} m{atom.m}n{atom.n}k{atom.k}{' of float16' if wide else ''}"
    detail = {"atom": atom, "units": units, "wide": wide}
    return Impl(name, "tensor", "warp", layouts=layouts, cost=m * n * k / 2048, detail=detail)


def _has_float8(target: Target) -> bool:
    """Whether a warp's products of eight-bit floats are the unit's own. Where warpgroups or tensor memory have them,
    the device compiler makes each mma.sp of two float16 ones and converts the operands again for every one."""
    return target.has("fp8_mma") and not (target.has("wgmma") or target.has("tcgen05"))


def _list(target: Target) -> str:
    """The sparse instructions of a target in words."""
    rows = [a for a in mma_sp_atoms() if a.supports(target.name)]
    made = dict.fromkeys(f"{a.a_dtype} × {a.b_dtype} into {a.c_dtype}" for a in rows)
    return ", ".join(made) or "none"


def _places(op: GemmSparse) -> str:
    """Why the operands cannot be read where they are."""
    if op.e.buffer.space != "shared":
        return f"the metadata `{op.e.buffer.name}` is in {op.e.buffer.space} memory, not a shared tile"
    for letter, region in (("A", op.a), ("B", op.b)):
        space = region.buffer.space
        if space not in ("shared", "fragment"):
            return f"{letter} `{region.buffer.name}` is in {space} memory, neither a shared tile nor a fragment"
        if space == "fragment" and tuple(region.extents[-2:]) != tuple(region.buffer.shape[-2:]):
            return f"a part of the fragment `{region.buffer.name}` takes part"
    return "" if op.c.buffer.space == "fragment" else f"C `{op.c.buffer.name}` is not a fragment"


def issue(op: GemmSparse, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """For each k-step: the operands and their metadata into registers, then every instruction of the warp's part."""
    atom: Atom = impl.detail["atom"]
    um, un = impl.detail["units"]
    m, n, k = op.mnk
    held_a, held_b, held_c = (f.registers for f in atom.fragments())
    inner, chunk, mi, ni = ctx.var("kk"), ctx.var("kc"), ctx.var("mi"), ctx.var("ni")
    outer = ctx.facts
    # A fragment's registers are found by constants; from shared tiles a long walk along K stays a loop.
    steps = k // atom.k
    fixed = any(r.buffer.space == "fragment" for r in (op.a, op.b))
    whole = steps if fixed else max(n for n in range(1, MOST_STEPS + 1) if steps % n == 0)
    ctx.facts = ctx.facts.with_range(inner, 0, whole - 1).with_range(chunk, 0, steps // whole - 1)
    step: Expr = inner if whole == steps else chunk * whole + inner
    count_m, count_n = m // (um * atom.m), n // (un * atom.n)
    wide: DType | None = impl.detail["wide"]
    loads: list[Stmt] = []
    stored = atom.stored_k
    part_a, part_b = operand_a(atom, (m, stored), um, un), operand_b(atom, (n, atom.k), um, un)
    a, first_a = _operand(op.a, part_a, op.transpose_a, "a", (mi, count_m), (step, steps, stored), wide, loads, ctx)
    b, first_b = _operand(op.b, part_b, not op.transpose_b, "b", (ni, count_n), (step, steps, atom.k), wide, loads, ctx)
    bits, width = BITS[atom.a_dtype], op.e.buffer.dtype.bits
    extent = atom.k // metadata_elements(bits, width)
    fragment = metadata(bits, width, (m, extent), um, un)
    e, held_e = metadata_words(op, fragment, step * extent, count_m, loads, ctx)
    c = ctx.reg(op.c.buffer)
    d = run(c, (mi * count_n + ni) * held_c, held_c)
    operands = (run(a, first_a, held_a), run(b, first_b, held_b))
    product = MmaSparse(atom.instruction, d, *operands, d, run(e, mi * held_e, held_e), loc=op.loc)
    body = (*loads, unroll(mi, count_m, (unroll(ni, count_n, (product,)),)))
    ctx.facts = outer
    walk: Stmt = unroll(inner, whole, body)
    if whole < steps:
        walk = For(chunk, ZERO, const(steps // whole), ONE, (walk,), "serial")
    return (*cleared(op, c, ctx), walk)


def _operand(
    region: Region, fragment: Any, k_rows: bool, letter: str, along: tuple[Any, int], walk: tuple[Expr, int, int],
    wide: DType | None, loads: list[Stmt], ctx: Context,
) -> tuple[Buffer, Expr]:  # fmt: skip
    """(registers of an operand, the first of one instruction) for one step; `fragment` is its part of the tile."""
    (var, count), (step, steps, extent) = along, walk
    held = fragment.registers // count
    dtype = region.buffer.dtype
    if region.buffer.space != "fragment":
        made = ctx.registers(f"{letter}_frag", count * held, dtype)
        loads += load(region, fragment, made, step * extent, k_rows, ctx, matrices=wide is None)
        return widened(made, wide, loads, ctx), var * held
    made = ctx.reg(region.buffer)
    if wide is None:
        return made, (var * steps + step) * held
    row, t = ctx.var(f"{letter}i"), ctx.var("t")
    value = cast(Load(made, ((row * steps + step) * held + t,)), wide)
    made = ctx.registers(f"{letter}_wide", count * held, wide)
    loads.append(unroll(row, count, (unroll(t, held, (Store(made, (row * held + t,), value),)),)))
    return made, var * held
