"""Statements on mbarriers that a kernel writes itself: arrive, expect bytes, wait for a phase."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..errors import ShapeError, SimulationError, TargetError
from ..ir.arith import Facts
from ..ir.expr import Expr
from ..ir.instr import Bar, BarArrive, BarExpect, BarWait, CopyAsyncArrive
from ..ir.node import node
from ..ir.op import Access, Choice, Impl, Op
from ..ir.stmt import Region, Stmt
from ..target import Target
from .context import Context
from .manual_op import ManualOp

ASKED = "the kernel asks for it"


def _bar(region: Region, ctx: Context) -> Bar:
    return Bar(region.buffer, ctx.facts.simplify(region.starts[0]))


def _agreed(value: Any, op: Op) -> Any:
    """The one value that all threads have."""
    found = np.unique(value)
    if found.size != 1:
        raise SimulationError(
            f"T.{op.name}: threads wait for different parities",
            rule="the threads that wait together wait for one phase",
            fix="derive the parity from a count that all threads of the warpgroup share",
            loc=op.loc,
        )
    return found[0]


@node
class OnBarrier(ManualOp):
    """A statement on one barrier of an array made by T.alloc_barrier."""

    feature: ClassVar[str] = "mbarrier"
    bar: Region

    def effects(self) -> tuple[Access, ...]:
        return (Access(self.bar.buffer, "atomic", self.bar),)

    def check(self) -> None:
        if self.bar.buffer.space != "barrier":
            raise ShapeError(
                f"T.{self.name}: `{self.bar.buffer.name}` is in {self.bar.buffer.space} memory",
                rule="it works on a barrier made by T.alloc_barrier",
                fix="bar = T.alloc_barrier(arrive_count)",
                loc=self.loc,
            )


@node
class BarrierArrive(OnBarrier):
    """Arrives on the barrier; `cta` names the block of the cluster whose barrier is meant, None for the own one."""

    name: ClassVar[str] = "mbarrier_arrive"
    cta: Expr | None = None

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        if self.cta is not None and not target.has("cluster"):
            raise TargetError(
                "T.mbarrier_arrive on another block's barrier",
                rule=f"{target.name} has no clusters",
                fix="compile for sm_90a, or leave cta_id out",
                loc=self.loc,
            )
        return ManualOp.impls(self, facts, target, warps)

    def run(self, env: Any) -> None:
        env.arrive(self.bar, self.cta)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        cta = ctx.facts.simplify(self.cta) if self.cta is not None else None
        return (BarArrive(_bar(self.bar, ctx), None, cta, ASKED, loc=self.loc),)


@node
class BarrierExpect(OnBarrier):
    """Announces `bytes` of asynchronous transfers for the current phase, and arrives when `arrive` says so."""

    name: ClassVar[str] = "mbarrier_expect_tx"
    bytes: Expr
    arrive: bool = False

    def run(self, env: Any) -> None:
        # The machine's copies land when they are issued, so that no bytes are ever outstanding.
        if self.arrive:
            env.arrive(self.bar)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        bar, size = _bar(self.bar, ctx), ctx.facts.simplify(self.bytes)
        if self.arrive:
            return (BarArrive(bar, size, None, ASKED, loc=self.loc),)
        return (BarExpect(bar, size, ASKED, loc=self.loc),)


@node
class BarrierWait(OnBarrier):
    """Waits until the phase of this parity has completed."""

    name: ClassVar[str] = "mbarrier_wait_parity"
    parity: Expr

    def effects(self) -> tuple[Access, ...]:
        return (Access(self.bar.buffer, "r", self.bar),)

    def waits_for(self, env: Any) -> str | None:
        """What is missing before the wait ends, None when it ends."""
        parity, phase = int(_agreed(env.scalar(self.parity), self)), env.barrier(self.bar).phase
        if phase % 2 != parity % 2:
            return None
        missing = env.barrier(self.bar).pending
        return f"phase {phase} of barrier `{self.bar.buffer.name}` ({missing} arrivals are missing)"

    def run(self, env: Any) -> None:
        pass

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (BarWait(_bar(self.bar, ctx), ctx.facts.simplify(self.parity), None, ASKED, loc=self.loc),)


@node
class BarrierCopies(OnBarrier):
    """The barrier is arrived on when the thread's earlier cp.async copies have landed; the arrival is one of the
    counted ones (no pending increment)."""

    name: ClassVar[str] = "cp_async_barrier_noinc"
    counted: ClassVar[bool] = True

    def run(self, env: Any) -> None:
        env.arrive(self.bar)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return (CopyAsyncArrive(_bar(self.bar, ctx), self.counted, loc=self.loc),)


@node
class BarrierHeld(BarrierCopies):
    """The barrier's phase waits for one arrival more, which comes when the thread's earlier cp.async copies have
    landed: it is held back until then, and no counted arrival comes of it."""

    name: ClassVar[str] = "ptx_cp_async_barrier"
    counted: ClassVar[bool] = False

    def run(self, env: Any) -> None:
        # The machine's copies have landed when they are issued, so that nothing holds the phase back.
        pass
