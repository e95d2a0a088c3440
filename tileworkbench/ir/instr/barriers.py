"""Barriers, meetings and fences."""

from __future__ import annotations

from typing import Any, ClassVar

from ..expr import Expr
from ..node import node
from .operands import Bar, Instr


@node
class BarInit(Instr):
    """One thread makes an mbarrier expect `count` arrivals a phase."""

    needs: ClassVar[str | None] = "mbarrier"
    synchronises: ClassVar[bool] = True
    bar: Bar
    count: int


@node
class BarArrive(Instr):
    """One arrival; with `bytes` it also adds them to what the phase must receive (arrive.expect_tx)."""

    needs: ClassVar[str | None] = "mbarrier"
    synchronises: ClassVar[bool] = True
    bar: Bar
    bytes: Any = None  # int, Expr or None
    remote: Expr | None = None
    reason: str = ""


@node
class BarExpect(Instr):
    """Adds `bytes` to what the current phase must receive, without an arrival (expect_tx)."""

    needs: ClassVar[str | None] = "mbarrier"
    synchronises: ClassVar[bool] = True
    bar: Bar
    bytes: Any  # int or Expr
    reason: str = ""


@node
class BarWait(Instr):
    """Waits until the phase with this parity has completed. `count` is the absolute phase number, known to the thread
    machine only: a slip of two phases has the right parity and the wrong count."""

    needs: ClassVar[str | None] = "mbarrier"
    synchronises: ClassVar[bool] = True
    bar: Bar
    parity: Expr
    count: Expr | None = None
    reason: str = ""


@node
class CopyAsyncArrive(Instr):
    """The barrier receives an arrival when this thread's earlier cp.asyncs are done."""

    needs: ClassVar[str | None] = "mbarrier"
    synchronises: ClassVar[bool] = True
    bar: Bar
    noinc: bool = True


@node
class Sync(Instr):
    """A rendezvous. who: warp, role, block, cluster, grid, or named: the `threads` that the kernel itself brings to
    barrier `id`. mode: both, arrive, wait. `id` and `threads` of a role's are set once barrier ids are assigned;
    `reason` names the hazard it serves."""

    scope: ClassVar[str] = "role"
    synchronises: ClassVar[bool] = True
    who: str
    mode: str = "both"
    id: int | None = None
    threads: int | None = None
    reason: str = ""


@node
class Fence(Instr):
    """kind: proxy_async (generic accesses to shared memory before later async ones), proxy_async_all (to any memory),
    mbarrier_init, cta, gpu, sys, tensormap."""

    synchronises: ClassVar[bool] = True
    kind: str
    reason: str = ""
