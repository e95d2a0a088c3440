"""Statements on warpgroups that a kernel writes itself: blocks for some of them, registers, asynchronous groups."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import ShapeError, TargetError
from ..ir.arith import Facts
from ..ir.effects import accesses
from ..ir.instr import CommitGroup, SetRegs, WaitGroup, WgmmaFence
from ..ir.node import node
from ..ir.op import Access, Choice, Impl, Op
from ..ir.stmt import Stmt
from ..target import Target
from .context import Context


def direct(op: Op, target: Target, feature: str) -> Choice:
    """The one instruction that the statement names, where the target has it."""
    if not target.has(feature):
        raise TargetError(
            f"T.{op.name}",
            rule=f"{target.name} has no {feature.replace('_', ' ')}",
            fix="compile for sm_90a, or leave synchronisation to the compiler",
            loc=op.loc,
        )
    return Choice((Impl(op.name, "alu"),))


@node
class WarpGroups(Op):
    """`with T.ws(0, 1): body` runs the body in those groups of 128 threads only."""

    name: ClassVar[str] = "ws"
    manual: ClassVar[bool] = True
    groups: tuple[int, ...]
    body: tuple[Stmt, ...]

    def effects(self) -> tuple[Access, ...]:
        return tuple(accesses(self.body))

    def text(self, show: Any) -> str:
        return f"with T.ws({', '.join(map(str, self.groups))})"


@node
class WaitWgmma(Op):
    """Waits until at most `pending` committed warpgroup products are outstanding."""

    name: ClassVar[str] = "wait_wgmma"
    manual: ClassVar[bool] = True
    pending: int

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return direct(self, target, 'wgmma')

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (WaitGroup("wgmma", self.pending, loc=self.loc),)



@node
class WgmmaArrive(Op):
    """Orders register accesses before the warpgroup products that follow."""

    name: ClassVar[str] = "warpgroup_arrive"
    manual: ClassVar[bool] = True

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return direct(self, target, 'wgmma')

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (WgmmaFence(loc=self.loc),)



@node
class WgmmaCommit(Op):
    """Closes a group of warpgroup products."""

    name: ClassVar[str] = "warpgroup_commit_batch"
    manual: ClassVar[bool] = True

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return direct(self, target, 'wgmma')

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (CommitGroup("wgmma", loc=self.loc),)



@node
class SetMaxRegisters(Op):
    """Raises (`increase`) or lowers the registers of each thread of the executing warpgroup to `count`."""

    name: ClassVar[str] = "set_max_nreg"
    manual: ClassVar[bool] = True
    count: int
    increase: bool

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""

    def check(self) -> None:
        if not 24 <= self.count <= 256 or self.count % 8:
            raise ShapeError(
                f"T.set_max_nreg({self.count})",
                rule="the number of registers is a multiple of 8 from 24 to 256",
                fix="for example 240 for compute, 24 for loads",
                loc=self.loc,
            )

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return direct(self, target, 'setmaxnreg')

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (SetRegs(self.count, "inc" if self.increase else "dec", loc=self.loc),)



@node
class CopyGroup(Op):
    """cp.async groups: `commit` closes one; otherwise waits until at most `pending` are outstanding."""

    name: ClassVar[str] = "cp_async_group"
    manual: ClassVar[bool] = True
    commit: bool
    pending: int = 0

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return direct(self, target, 'cp_async')

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (CommitGroup("copy", loc=self.loc) if self.commit else WaitGroup("copy", self.pending, loc=self.loc),)



@node
class StoreGroup(Op):
    """Groups of bulk stores: `commit` closes one; otherwise waits until at most `pending` are outstanding, with `read`
    only until their sources have been read."""

    name: ClassVar[str] = "tma_store_group"
    manual: ClassVar[bool] = True
    commit: bool
    pending: int = 0
    read: bool = True

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return direct(self, target, 'bulk_copy')

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        if self.commit:
            return (CommitGroup("bulk", loc=self.loc),)
        return (WaitGroup("bulk", self.pending, self.read, loc=self.loc),)
