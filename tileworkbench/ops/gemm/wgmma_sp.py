"""Warpgroup products of a sparse first operand (Hopper): operands as for the dense instruction, twice the K of a step,
and metadata in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import LayoutError
from ...ir.expr import Buffer, Expr, const
from ...ir.instr import CommitGroup, Wgmma, WgmmaFence
from ...ir.op import Impl, Refusal
from ...ir.stmt import ONE, ZERO, For, Stmt
from ...layout import metadata_elements
from ...layout.atoms import BITS
from ...layout.tiles import wgmma_accumulator, wgmma_metadata, wgmma_operand_a
from ...layout.wgmma import wgmma_n, wgmma_sp_atom
from ...target import Target
from ..context import Context, run
from .metadata import metadata_words
from .operands import operand_dtype
from .partition import partition
from .wgmma import MAX_N, WARPS, desc, refusal, swizzles, touched, zero_flag

if TYPE_CHECKING:
    from .sparse import GemmSparse

NAME = "wgmma.sp"
K_BYTES = 64  # of a dense operand's row in one instruction


def wgmma_sparse_impl(op: GemmSparse, target: Target, warps: int) -> Impl | Refusal:
    """The widest instruction whose N divides a warpgroup's share, or the reason why there is none."""
    if not target.has("wgmma"):
        return Refusal(NAME, f"{target.name} has no wgmma")
    reason = refusal(op, None, warps, K_BYTES)
    if reason:
        return Refusal(NAME, reason)
    m, n, k = op.mnk
    a, b = op.a.buffer, op.b.buffer
    groups = partition(m, n, warps // WARPS, 64, 8, "full_row" if op.policy == "square" else op.policy)
    if groups is None:
        return Refusal(NAME, f"a {m}×{n} tile is not made of 64×8 pieces for {warps // WARPS} warpgroups")
    gm, gn = groups
    names = [operand_dtype(x) for x in (a, b)]
    width = n // gn
    n_inst = next((w for w in sorted(wgmma_n(names[0]), reverse=True) if w <= MAX_N and width % w == 0), 0)
    if not n_inst:
        return Refusal(NAME, f"no instruction width divides {width} columns")
    try:
        atom = wgmma_sp_atom(n_inst, *names, op.c.buffer.dtype.name)
    except LayoutError as error:
        return Refusal(NAME, error.found)
    layouts: dict[Buffer, tuple[Any, ...]] = {op.c.buffer: (wgmma_accumulator((m, n), gm, gn, n_inst),)}
    operands = [(op.b, not op.transpose_b, n_inst, K_BYTES)]
    if a.space == "fragment":
        layouts[a] = (wgmma_operand_a(names[0], (m, k // 2), gm, gn),)
    else:
        operands.insert(0, (op.a, op.transpose_a, 64, K_BYTES // 2))
    for region, mn_major, extent, k_bytes in operands:
        found = swizzles(region, mn_major, extent, k_bytes)
        layouts[region.buffer] = tuple(x for x in layouts.get(region.buffer, found) if x in found)
        if not layouts[region.buffer]:
            return Refusal(NAME, f"rows of `{region.buffer.name}` fit no swizzle span")
    detail = {"atom": atom, "groups": groups, "n_inst": n_inst}
    proxies = {region.buffer: "async" for region, *_ in operands}
    name = f"{NAME} m64n{n_inst}k{atom.k}"
    done = "manual" if op.manual else "group"
    return Impl(name, "tensor", "warpgroup", done, layouts, proxies, cost=m * n * k / 8192, detail=detail)


def issue(op: GemmSparse, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """The metadata of the whole tile into registers, then all instructions as one group."""
    atom, (gm, gn), n_inst = impl.detail["atom"], impl.detail["groups"], impl.detail["n_inst"]
    m, n, k = op.mnk
    rows, columns, steps = m // gm // 64, n // gn // n_inst, k // atom.k
    mi, ni, ki = ctx.var("mi"), ctx.var("ni"), ctx.var("ki")
    group: Expr = ctx.facts.simplify(ctx.thread // (WARPS * ctx.target.arch.warp_size))
    unit_m = ctx.facts.simplify(group % gm) if gm > 1 else ZERO
    unit_n = ctx.facts.simplify(group // gm) if gn > 1 else ZERO
    bits, width = BITS[atom.a_dtype], op.e.buffer.dtype.bits
    fragment = wgmma_metadata(bits, width, (m, k // metadata_elements(bits, width)), gm, gn)
    loads: list[Stmt] = []
    e, held_e = metadata_words(op, fragment, ZERO, rows * steps, loads, ctx)
    d = run(ctx.reg(op.c.buffer), (mi * columns + ni) * atom.c.registers, atom.c.registers)
    if op.a.buffer.space == "fragment":
        a: Any = run(ctx.reg(op.a.buffer), (mi * steps + ki) * atom.a.registers, atom.a.registers)
    else:
        a = desc(op.a, op.transpose_a, 64, ((unit_m, gm, m // gm), (mi, rows, 64)), (ki, steps, atom.stored_k), ctx)
    along_n = ((unit_n, gn, n // gn), (ni, columns, n_inst))
    b = desc(op.b, not op.transpose_b, n_inst, along_n, (ki, steps, atom.k), ctx, K_BYTES)
    zero = ctx.facts.simplify(zero_flag(op.clear, ki))
    meta = run(e, (mi * steps + ki) * held_e, held_e)
    body: tuple[Stmt, ...] = (Wgmma(atom.instruction, d, a, b, zero, meta, loc=op.loc),)
    for var, count in ((ki, steps), (ni, columns), (mi, rows)):
        body = (For(var, ZERO, const(count), ONE, body, "unroll"),)
    ctx.in_flight.append(op)
    held = (*touched(op, ctx), run(e, 0, e.shape[0]))
    return (*loads, WgmmaFence(held, loc=op.loc), *body, CommitGroup("wgmma", loc=op.loc))
