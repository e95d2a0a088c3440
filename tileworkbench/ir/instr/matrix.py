"""Matrix instructions."""

from __future__ import annotations

from typing import ClassVar

from ..expr import Expr
from ..node import node
from .operands import Desc, Instr, Reg


@node
class Mma(Instr):
    """d = a·b + c by one warp (mma.sync, mfma). `atom` names a row of the layout room's atoms."""

    scope: ClassVar[str] = "warp"
    engine: ClassVar[str] = "tensor"
    atom: str
    d: Reg
    a: Reg
    b: Reg
    c: Reg


@node
class MmaSparse(Instr):
    """d = a·b + c by one warp where `a` holds half the elements of its rows and `e`, 32 bits of each lane, says which
    (mma.sp). `atom` names a row of the layout room's sparse atoms; `selector` says which lanes of each quad hold the
    `e` that counts, where not all of them do."""

    scope: ClassVar[str] = "warp"
    needs: ClassVar[str | None] = "sparse_mma"
    engine: ClassVar[str] = "tensor"
    atom: str
    d: Reg
    a: Reg
    b: Reg
    c: Reg
    e: Reg
    selector: int = 0


@node
class Wgmma(Instr):
    """d (+)= a·b by one warpgroup, asynchronous until its group is waited for. Old d is ignored where `zero` holds.
    With `e` (sparse rows only) `a` holds half the elements of its rows, and `e`, 32 bits of each lane, says which;
    `selector` says in which lanes of each quad it counts, where not in all of them."""

    scope: ClassVar[str] = "warpgroup"
    needs: ClassVar[str | None] = "wgmma"
    engine: ClassVar[str] = "tensor"
    proxy: ClassVar[str] = "async"
    atom: str
    d: Reg
    a: Reg | Desc
    b: Desc
    zero: Expr
    e: Reg | None = None
    selector: int = 0


@node
class WgmmaFence(Instr):
    """Orders register accesses of the warpgroup before following wgmmas; `regs` are those that they touch."""

    scope: ClassVar[str] = "warpgroup"
    needs: ClassVar[str | None] = "wgmma"
    regs: tuple[Reg, ...] = ()
