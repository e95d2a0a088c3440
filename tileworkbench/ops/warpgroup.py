"""Statements on warpgroups that a kernel writes itself: blocks for some of them, registers, asynchronous groups."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import ShapeError
from ..ir.effects import accesses
from ..ir.expr import const
from ..ir.instr import CommitGroup, Reg, SetRegs, WaitGroup, WgmmaFence
from ..ir.node import node
from ..ir.op import Access, Impl, Op
from ..ir.stmt import Region, Stmt
from ..ir.uniform import WARPGROUP
from .context import Context
from .manual_op import Ordering

Groups = tuple[int, ...]


@node
class WarpGroups(Op):
    """`with T.ws(0, 1): body` runs the body in those groups of `unit` threads only: warpgroups of 128, or warps where
    a branch on the thread index selects single ones. Neighbours run side by side, `after` one: where they touch the
    same tiles, after those before it. `sides`: the branches of the text that it is made of, outermost first, each by
    its number and which of its sides holds the body."""

    name: ClassVar[str] = "ws"
    groups: tuple[int, ...]
    body: tuple[Stmt, ...]
    unit: int = WARPGROUP
    after: bool = False
    sides: tuple[tuple[int, int], ...] = ()

    @property
    def manual(self) -> bool:
        return True

    def effects(self) -> tuple[Access, ...]:
        return tuple(accesses(self.body))

    def text(self, show: Any) -> str:
        return f"with T.ws({', '.join(map(str, self.groups))})"


@node
class WaitWgmma(Ordering):
    """Waits until at most `pending` committed warpgroup products are outstanding."""

    name: ClassVar[str] = "wait_wgmma"
    feature: ClassVar[str] = "wgmma"
    pending: int

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (WaitGroup("wgmma", self.pending, loc=self.loc),)


@node
class WgmmaArrive(Ordering):
    """Orders register accesses before the warpgroup products that follow."""

    name: ClassVar[str] = "warpgroup_arrive"
    feature: ClassVar[str] = "wgmma"

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (WgmmaFence(loc=self.loc),)


@node
class WgmmaOperand(Ordering):
    """The registers of `tile` stay where they are: what comes before touches them before, what comes after, after."""

    name: ClassVar[str] = "warpgroup_fence_operand"
    feature: ClassVar[str] = "wgmma"
    tile: Region

    def check(self) -> None:
        if self.tile.buffer.space not in ("fragment", "local"):
            raise ShapeError(
                f"T.warpgroup_fence_operand: `{self.tile.buffer.name}` is in {self.tile.buffer.space} memory",
                rule="it orders the registers of an accumulator",
                fix="name what T.alloc_fragment made",
                loc=self.loc,
            )

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        registers = ctx.reg(self.tile.buffer)
        return (WgmmaFence((Reg(registers, const(0), registers.static_size() or 1),), loc=self.loc),)


@node
class WgmmaCommit(Ordering):
    """Closes a group of warpgroup products."""

    name: ClassVar[str] = "warpgroup_commit_batch"
    feature: ClassVar[str] = "wgmma"

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (CommitGroup("wgmma", loc=self.loc),)


@node
class SetMaxRegisters(Ordering):
    """Raises (`increase`) or lowers the registers of each thread of the executing warpgroup to `count`."""

    name: ClassVar[str] = "set_max_nreg"
    feature: ClassVar[str] = "setmaxnreg"
    count: int
    increase: bool

    def check(self) -> None:
        if not 24 <= self.count <= 256 or self.count % 8:
            raise ShapeError(
                f"T.set_max_nreg({self.count})",
                rule="the number of registers is a multiple of 8 from 24 to 256",
                fix="for example 240 for compute, 24 for loads",
                loc=self.loc,
            )

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (SetRegs(self.count, "inc" if self.increase else "dec", loc=self.loc),)


@node
class CopyGroup(Ordering):
    """cp.async groups: `commit` closes one; otherwise waits until at most `pending` are outstanding."""

    name: ClassVar[str] = "cp_async_group"
    feature: ClassVar[str] = "cp_async"
    commit: bool
    pending: int = 0

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (CommitGroup("copy", loc=self.loc) if self.commit else WaitGroup("copy", self.pending, loc=self.loc),)


@node
class StoreGroup(Ordering):
    """Groups of bulk stores: `commit` closes one; otherwise waits until at most `pending` are outstanding, with `read`
    only until their sources have been read."""

    name: ClassVar[str] = "tma_store_group"
    feature: ClassVar[str] = "bulk_copy"
    commit: bool
    pending: int = 0
    read: bool = True

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        if self.commit:
            return (CommitGroup("bulk", loc=self.loc),)
        return (WaitGroup("bulk", self.pending, self.read, loc=self.loc),)
