"""Ordinary and matrix-shaped accesses to memory."""

from __future__ import annotations

from typing import ClassVar

from ..expr import Expr
from ..node import node
from .operands import Addr, Instr, Reg


@node
class LoadMem(Instr):
    """dst.count consecutive elements from memory to registers in one access. Where `pred` is false nothing is read
    and the registers become `fill` (kept when fill is None). cache: "", "cg", "cs", "nc"."""

    engine: ClassVar[str] = "lsu"
    dst: Reg
    src: Addr
    pred: Expr | None = None
    fill: Expr | None = None
    cache: str = ""


@node
class StoreMem(Instr):
    """src.count consecutive elements from registers to memory in one access, where `pred` holds. `block`: the shared
    memory of the cluster's block of this rank is meant, not the own one."""

    engine: ClassVar[str] = "lsu"
    dst: Addr
    src: Reg
    pred: Expr | None = None
    cache: str = ""
    block: Expr | None = None


@node
class AtomicMem(Instr):
    """op: add, max, min, and, or, xor, exch, cas on one element (or `value.count` packed ones); `old` receives the
    previous value when given. order: relaxed, acquire, release, acq_rel; scope_of: cta, gpu, sys. The ops load (to
    `old`) and store are one way only, on one element, and also have the order seq_cst."""

    engine: ClassVar[str] = "lsu"
    op: str
    dst: Addr
    value: Reg
    old: Reg | None = None
    pred: Expr | None = None
    order: str = "relaxed"
    scope_of: str = "gpu"


@node
class LdMatrix(Instr):
    """`num` 8×8 matrices of 16-bit elements. Each lane gives the address of one row (lanes 0–7 of the first matrix,
    8–15 of the second, …); dst.count = 2·num elements."""

    scope: ClassVar[str] = "warp"
    needs: ClassVar[str | None] = "ldmatrix"
    engine: ClassVar[str] = "lsu"
    dst: Reg
    src: Addr
    num: int
    transposed: bool = False


@node
class StMatrix(Instr):
    """The inverse of LdMatrix."""

    scope: ClassVar[str] = "warp"
    needs: ClassVar[str | None] = "stmatrix"
    engine: ClassVar[str] = "lsu"
    dst: Addr
    src: Reg
    num: int
    transposed: bool = False
