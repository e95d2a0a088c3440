"""Sparse metadata on its way from a shared tile into registers: ordinary loads, a few bytes a lane and step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir.dtype import UINT32
from ...ir.expr import Buffer, Expr, Load, cast, const
from ...ir.stmt import Stmt, Store
from ..context import Context
from .operands import load, unroll

if TYPE_CHECKING:
    from .sparse import GemmSparse

METADATA_BITS = 32  # of one lane for one instruction


def metadata_words(
    op: GemmSparse, fragment: Any, k0: Expr, count: int, loads: list[Stmt], ctx: Context
) -> tuple[Buffer, int]:
    """(registers of the metadata, how many hold one instruction's 32 bits); `fragment` is the part of E from column
    `k0` on, for `count` instructions."""
    dtype = op.e.buffer.dtype
    made = ctx.registers("e_frag", fragment.registers, dtype)
    loads += load(op.e, fragment, made, k0, op.transpose_e, ctx, matrices=False)
    held = METADATA_BITS // dtype.bits
    if fragment.registers == count * held:
        return made, held
    # One element speaks of a whole row: the lane's half of it, and of the one 8 rows below.
    words, i, shift = ctx.registers("e_half", count, UINT32), ctx.var("i"), cast(ctx.thread % 2 * 16, UINT32)
    low, high = (cast(Load(made, (i * 2 + row,)), UINT32) >> shift for row in range(2))
    loads.append(unroll(i, count, (Store(words, (i,), low & const(0xFFFF, UINT32) | high << 16),)))
    return words, 1
