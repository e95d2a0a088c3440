"""What the planned level adds to tile statements: roles, channels and split-phase operations."""

from __future__ import annotations

from typing import Any

from .expr import Buffer, Expr
from .node import Node, leaf, node
from .op import Impl, Op
from .stmt import Stmt


@leaf
@node
class Channel(Node):
    """A ring of `depth` versions of some shared buffers between one producer role and its consumer roles.

    completion: bytes (an mbarrier counts transferred bytes), arrive (threads arrive on an mbarrier), group (commit/wait
    groups of one role's own asynchronous copies), none (stores of the role itself, a block barrier suffices).
    A phase is a running count of the channel's uses, never an expression of a loop variable."""

    name: str
    buffers: tuple[Buffer, ...]
    depth: int
    producer: str
    consumers: tuple[str, ...]
    completion: str = "bytes"
    bytes: int = 0  # expected per use, for completion == "bytes"


@node
class Role(Stmt):
    """Warps `first_warp` … `first_warp + warps - 1` run `body`. `registers` is the setmaxnreg target, None for none.

    A role runs beside the roles next to it, `after` one: where they touch the same tiles, after those before it."""

    name: str
    first_warp: int
    warps: int
    body: tuple[Stmt, ...]
    registers: int | None = None
    after: bool = False


@node
class Acquire(Stmt):
    """Producer: waits until the channel's next version is free; its buffers then mean that version."""

    channel: Channel


@node
class Commit(Stmt):
    """Producer: everything issued since Acquire belongs to this version; consumers may wait for it."""

    channel: Channel


@node
class Wait(Stmt):
    """Consumer: waits until the next version is full; its buffers then mean that version. `ahead` versions committed
    later may still be in flight (group channels). Without `meets` the threads of a role that feeds itself meet at the
    wait that follows at once."""

    channel: Channel
    ahead: int = 0
    meets: bool = True


@node
class Release(Stmt):
    """Consumer: done with the oldest version it holds."""

    channel: Channel


@node
class Issue(Stmt):
    """Begins `op` by `impl`. `pred` guards it (None: always). Results may be used only after Complete or a Wait."""

    op: Op
    impl: Impl
    pred: Expr | None = None


@node
class Complete(Stmt):
    """Waits for an issued op of this role; up to `pending` later groups of the same engine may stay in flight."""

    op: Op
    impl: Impl
    pending: int = 0


@node
class Turn(Stmt):
    """Order between co-resident roles: `take` waits for this role's turn, `give` passes it to the next role."""

    name: str
    action: str
    roles: tuple[str, ...]
    attrs: tuple[tuple[str, Any], ...] = ()
