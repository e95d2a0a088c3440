"""Warpgroup products of a sparse first operand (Hopper): operands as for the dense instruction, twice the K of a step,
and metadata in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.instr import CommitGroup, WgmmaFence
from ...ir.op import Impl, Refusal
from ...ir.stmt import ZERO, Stmt
from ...layout import metadata_elements
from ...layout.atoms import BITS
from ...layout.tiles import wgmma_metadata
from ...layout.wgmma import wgmma_sp_atom
from ...target import Target
from ..context import Context, run
from .metadata import metadata_words
from .wgmma import instructions, touched
from .wgmma_choice import Family, choose

if TYPE_CHECKING:
    from .sparse import GemmSparse

K_BYTES = 64  # of a dense operand's row in one instruction
FAMILY = Family("wgmma.sp", wgmma_sp_atom, K_BYTES, 8192)


def wgmma_sparse_impl(op: GemmSparse, target: Target, warps: int) -> Impl | Refusal:
    """The widest instruction whose N divides a warpgroup's share, or the reason why there is none."""
    return choose(op, FAMILY, None, target, warps)


def issue(op: GemmSparse, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """The metadata of the whole tile into registers, then all instructions as one group."""
    atom, groups = impl.detail["atom"], impl.detail["groups"]
    m, _, k = op.mnk
    count = m // groups[0] // 64 * (k // atom.k)
    bits, width = BITS[atom.a_dtype], op.e.buffer.dtype.bits
    fragment = wgmma_metadata(bits, width, (m, k // metadata_elements(bits, width)), *groups)
    loads: list[Stmt] = []
    e, held = metadata_words(op, fragment, ZERO, count, loads, ctx)
    products = instructions(op, impl, ctx, K_BYTES, lambda piece: run(e, piece * held, held))
    ctx.in_flight.append(op)
    in_use = (*touched(op, ctx), run(e, 0, e.shape[0]))
    return (*loads, WgmmaFence(in_use, loc=op.loc), *products, CommitGroup("wgmma", loc=op.loc))
