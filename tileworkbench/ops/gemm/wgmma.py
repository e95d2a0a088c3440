"""Warpgroup products (Hopper): B, and A unless it is a fragment, come from swizzled shared tiles through descriptors;
the accumulator stays in registers until its group has been waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...ir.arith import Facts
from ...ir.expr import Const, Expr, compare, const, logical
from ...ir.instr import CommitGroup, Reg, WaitGroup, Wgmma, WgmmaFence
from ...ir.op import Impl, Refusal
from ...ir.stmt import ONE, ZERO, For, Stmt
from ...layout.wgmma import K_BYTES, wgmma_atom
from ...target import Target
from ..context import Context, run
from .wgmma_choice import WARPS, Family, choose
from .wgmma_descriptors import desc

if TYPE_CHECKING:
    from .op import Gemm
    from .product import Product

FAMILY = Family("wgmma", wgmma_atom, K_BYTES, 4096)


def wgmma_impl(op: Gemm, facts: Facts, target: Target, warps: int) -> Impl | Refusal:
    """The widest instruction whose N divides a warpgroup's share, or the reason why there is none."""
    return choose(op, FAMILY, facts, target, warps)


def issue(op: Gemm, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """All instructions of the tile as one group."""
    ctx.in_flight.append(op)
    products = instructions(op, impl, ctx, FAMILY.k_bytes)
    return (WgmmaFence(touched(op, ctx), loc=op.loc), *products, CommitGroup("wgmma", loc=op.loc))


def instructions(
    op: Product, impl: Impl, ctx: Context, k_bytes: int, metadata: Callable[[Expr], Reg] | None = None
) -> tuple[Stmt, ...]:
    """For each 64-row and n_inst-column piece, K in steps. `metadata` gives a sparse A's registers for one of its
    pieces, counted along K first."""
    atom, (gm, gn), n_inst = impl.detail["atom"], impl.detail["groups"], impl.detail["n_inst"]
    m, n, k = op.mnk
    rows, columns, steps = m // gm // 64, n // gn // n_inst, k // atom.k
    mi, ni, ki = ctx.var("mi"), ctx.var("ni"), ctx.var("ki")
    group: Expr = ctx.facts.simplify(ctx.thread // (WARPS * ctx.target.arch.warp_size))
    unit_m = ctx.facts.simplify(group % gm) if gm > 1 else ZERO
    unit_n = ctx.facts.simplify(group // gm) if gn > 1 else ZERO
    piece = mi * steps + ki
    d = run(ctx.reg(op.c.buffer), (mi * columns + ni) * atom.c.registers, atom.c.registers)
    if op.a.buffer.space == "fragment":
        a: Any = run(ctx.reg(op.a.buffer), piece * atom.a.registers, atom.a.registers)
    else:
        a = desc(op.a, op.transpose_a, 64, ((unit_m, gm, m // gm), (mi, rows, 64)), (ki, steps, atom.stored_k), ctx)
    along_n = ((unit_n, gn, n // gn), (ni, columns, n_inst))
    b = desc(op.b, not op.transpose_b, n_inst, along_n, (ki, steps, atom.k), ctx, k_bytes)
    zero = ctx.facts.simplify(zero_flag(op.clear, ki))
    meta = metadata(piece) if metadata else None
    body: tuple[Stmt, ...] = (Wgmma(atom.instruction, d, a, b, zero, meta, loc=op.loc),)
    for var, count in ((ki, steps), (ni, columns), (mi, rows)):
        body = (For(var, ZERO, const(count), ONE, body, "unroll"),)
    return body


def zero_flag(clear: Expr, ki: Expr) -> Expr:
    """Old contents are ignored by the first k-step of a clearing product."""
    first = compare("eq", ki, 0)
    if isinstance(clear, Const):
        return first if clear.value else const(False)
    return logical("land", clear, first)


def complete(op: Any, impl: Impl, ctx: Context, pending: int = 0) -> tuple[Stmt, ...]:
    """After this the accumulator may be read and the operands overwritten."""
    still = ctx.in_flight[len(ctx.in_flight) - pending :] if pending else []
    ctx.in_flight = list(still)
    busy = {reg.buffer for other in still for reg in touched(other, ctx)}
    # Naming every register tile that may be touched keeps the device compiler from moving work that should overlap with
    # the product behind the wait.
    held = [made for tile, made in ctx.storage.items() if tile.space == "fragment" and made not in busy]
    regs = tuple(run(made, 0, made.shape[0]) for made in dict.fromkeys(held))
    return (WaitGroup("wgmma", pending, regs=regs, loc=op.loc),)


def touched(op: Any, ctx: Context) -> tuple[Reg, ...]:
    """Registers that the product reads or writes while it is in flight."""
    fragments = [r.buffer for r in (op.c, op.a) if r.buffer.space == "fragment"]
    return tuple(run(ctx.reg(b), 0, ctx.reg(b).shape[0]) for b in fragments)
