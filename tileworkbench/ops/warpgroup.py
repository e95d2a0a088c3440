"""Statements on warpgroups that a kernel writes itself: blocks for some of them, registers, asynchronous groups."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import ShapeError
from ..ir.effects import accesses
from ..ir.node import node
from ..ir.op import Access, Op
from ..ir.stmt import Stmt


@node
class WarpGroups(Op):
    """`with T.ws(0, 1): body` runs the body in those groups of 128 threads only."""

    name: ClassVar[str] = "ws"
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
    pending: int

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""


@node
class WgmmaArrive(Op):
    """Orders register accesses before the warpgroup products that follow."""

    name: ClassVar[str] = "warpgroup_arrive"

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""


@node
class WgmmaCommit(Op):
    """Closes a group of warpgroup products."""

    name: ClassVar[str] = "warpgroup_commit_batch"

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""


@node
class SetMaxRegisters(Op):
    """Raises (`increase`) or lowers the registers of each thread of the executing warpgroup to `count`."""

    name: ClassVar[str] = "set_max_nreg"
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


@node
class CopyGroup(Op):
    """cp.async groups: `commit` closes one; otherwise waits until at most `pending` are outstanding."""

    name: ClassVar[str] = "cp_async_group"
    commit: bool
    pending: int = 0

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""


@node
class StoreGroup(Op):
    """Groups of bulk stores: `commit` closes one; otherwise waits until at most `pending` are outstanding, with `read`
    only until their sources have been read."""

    name: ClassVar[str] = "tma_store_group"
    commit: bool
    pending: int = 0
    read: bool = True

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""
