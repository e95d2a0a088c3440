"""Operands of instructions, and the base of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..expr import Buffer, Expr
from ..node import Node, node
from ..stmt import Stmt


@node
class Reg(Node):
    """Registers start … start + count - 1 of a reg buffer; counts elements of its dtype. `start` is constant once
    loops are unrolled."""

    buffer: Buffer
    start: Expr
    count: int = 1


@node
class Addr(Node):
    """A place in memory: `offset` elements of the buffer's dtype from its start (a shared buffer's versions
    included)."""

    buffer: Buffer
    offset: Expr


@node
class Bar(Node):
    """One mbarrier of a barrier buffer."""

    buffer: Buffer
    index: Expr


@node
class Desc(Node):
    """A wgmma operand in shared memory: `addr` of its first byte, swizzle span in bytes (0, 32, 64, 128), leading and
    stride byte offsets, and whether the reduction dim ("k") or the other ("mn") is contiguous."""

    addr: Addr
    swizzle: int
    leading: int
    stride: int
    major: str = "k"


@dataclass(frozen=True, eq=False, slots=True)
class Instr(Stmt):
    """Base of all rows."""

    scope: ClassVar[str] = "lane"
    needs: ClassVar[str | None] = None
    proxy: ClassVar[str] = "generic"
    engine: ClassVar[str] = "alu"
    synchronises: ClassVar[bool] = False
