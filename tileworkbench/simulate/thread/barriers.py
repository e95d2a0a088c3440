"""mbarriers: arrivals, transaction bytes and phases, with the absolute number of each phase kept beside its parity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.expr import Buffer
from .faults import fault, place
from .rules import RULES

if TYPE_CHECKING:
    from .block import Block
    from .warp import Warp


def learn(known: dict[int, Any], more: dict[int, Any]) -> None:
    """Adds to what is known of other blocks: by block number, the clocks of its threads up to which it is over."""
    for number, order in more.items():
        known[number] = np.maximum(known[number], order) if number in known else order


@dataclass(slots=True, eq=False)
class MBarrier:
    """`phase` counts completed phases; `pending` arrivals and `tx` bytes are what the current phase still lacks.

    `order`/`fenced` collect what this phase's arrivals hand over; `done` what all completed phases did."""

    name: str
    agent: int
    count: int = 0
    pending: int = 0
    tx: int = 0
    phase: int = 0
    init: Any = None
    init_thread: int = -1
    init_clock: int = 0
    init_fenced: bool = False
    order: Any = None
    fenced: Any = None
    done: tuple[Any, Any] | None = None
    seen: int = 0  # the most phases that a wait has found complete
    loads: int = 0  # the phase, from 1, that the last transfer belongs to
    load: Any = None
    heard: dict[int, Any] = field(default_factory=dict)  # by the cluster's blocks that arrive in this phase
    known: dict[int, Any] = field(default_factory=dict)  # of all completed phases

    def state(self) -> str:
        missing = f"{self.pending} of {self.count} arrivals missing" if self.pending else "all arrivals in"
        return f"in phase {self.phase}, {missing}, {self.tx} bytes outstanding"


class Barriers:
    """All mbarriers of a block. `columns` are their agents' columns in the clocks, in order."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.first: dict[Buffer, int] = {}
        self.columns: list[tuple[Buffer, int]] = []
        for buffer in block.program.kernel.buffers:
            if buffer.space == "barrier":
                self.first[buffer] = len(self.columns)
                self.columns += [(buffer, i) for i in range(buffer.static_size() or 1)]
        agents = -(-block.threads // block.program.lanes) * block.program.lanes  # the first column after the threads
        self.all = [MBarrier(f"{b.name}[{i}]", agents + n) for n, (b, i) in enumerate(self.columns)]

    def find(self, w: Warp, buffer: Buffer, index: int) -> MBarrier:
        extent = buffer.static_size() or 1
        if buffer not in self.first:
            raise fault(w, "bounds", f"{buffer.name} is not a barrier buffer of the kernel")
        if not 0 <= index < extent:
            raise fault(
                w,
                "bounds",
                f"barrier {index} of {buffer.name!r}, which has {extent}",
                rule="a barrier index lies inside its array",
            )
        return self.all[self.first[buffer] + index]

    def start(self, w: Warp, bar: MBarrier, count: int) -> None:
        """BarInit by one thread."""
        if bar.init is not None:
            raise fault(
                w, "barrier", f"{bar.name} is initialised twice", rule="a barrier is initialised once", other=bar.init
            )
        if count < 1:
            raise fault(
                w, "barrier", f"{bar.name} would count {count} arrivals", rule="a barrier counts at least one arrival"
            )
        lanes = w.active()
        if lanes.size != 1:
            raise fault(
                w,
                "barrier",
                f"{lanes.size} threads initialise {bar.name}",
                rule="one thread initialises a barrier",
                lanes=lanes,
            )
        bar.count = bar.pending = count
        bar.init, bar.init_thread, bar.init_clock = w.at, int(w.threads[lanes[0]]), int(self.block.clocks.now[w.index])

    def fence_init(self, w: Warp) -> None:
        """Fence mbarrier_init (or a proxy fence, which is stronger) by the initialising thread."""
        mine = set(w.threads[w.mask].tolist())
        for bar in self.all:
            if bar.init is not None and bar.init_thread in mine:
                bar.init_fenced = True

    def check_use(self, w: Warp, bar: MBarrier, threads: Any) -> None:
        """A barrier is used only after its initialisation is visible to the user."""
        rule = RULES["barrier_init"]
        if bar.init is None:
            raise fault(
                w,
                "barrier",
                f"{bar.name} is used before it is initialised",
                rule=str(rule),
                fix=rule.fix,
            )
        if threads.size == 1 and threads[0] == bar.init_thread:
            return
        known = self.block.clocks.order[threads, bar.init_thread] >= bar.init_clock
        if not known.all():
            self.block.report(
                fault(
                    w,
                    "race",
                    f"{bar.name} is used without an order after its {place(bar.init)}",
                    other=bar.init,
                    rule=str(rule),
                    fix=rule.fix,
                )
            )
        elif not bar.init_fenced:
            self.block.report(
                fault(
                    w,
                    "race",
                    f"{bar.name} is used though no Fence(mbarrier_init) followed its {place(bar.init)}",
                    other=bar.init,
                    rule=str(rule),
                    fix=rule.fix,
                )
            )

    def arrive(self, w: Warp, bar: MBarrier, arrivals: int, handed: tuple[Any, Any], expected: int = 0) -> None:
        """`arrivals` at once, handing over the releasing threads' clocks; `expected` bytes join the phase first."""
        bar.tx += expected
        order, fenced = handed
        bar.order = order if bar.order is None else np.maximum(bar.order, order)
        bar.fenced = fenced if bar.fenced is None else np.maximum(bar.fenced, fenced)
        bar.pending -= arrivals
        if bar.pending < 0:
            raise fault(
                w,
                "barrier",
                f"{bar.name} receives {bar.count - bar.pending} arrivals in phase {bar.phase} and counts {bar.count}",
                rule="a phase gets exactly as many arrivals as the barrier was initialised for",
                other=bar.init,
                fix="check which threads arrive, and the count of BarInit",
            )
        self.settle(w, bar)

    def receive(self, w: Warp, bar: MBarrier, size: int, by: Any) -> None:
        """A transfer's bytes have landed."""
        bar.tx -= size
        self.settle(w, bar, by)

    def settle(self, w: Warp, bar: MBarrier, by: Any = None) -> None:
        """Completes the phase when nothing is missing."""
        if bar.pending:
            return
        if bar.tx < 0:
            raise fault(
                w,
                "bytes",
                at=by,
                found=f"{bar.name} has received {-bar.tx} bytes more than phase {bar.phase} expects",
                other=bar.init,
                rule="the bytes announced (arrive with bytes) are the bytes that the transfers of the phase bring",
            )
        if bar.tx == 0:
            old = bar.done
            bar.done = (
                (bar.order, bar.fenced)
                if old is None
                else (np.maximum(old[0], bar.order), np.maximum(old[1], bar.fenced))
            )
            bar.phase += 1
            bar.done[0][bar.agent] = bar.phase
            bar.pending, bar.order, bar.fenced = bar.count, None, None
            learn(bar.known, bar.heard)
            bar.heard = {}
