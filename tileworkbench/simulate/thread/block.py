"""One block: its warps, memory and asynchronous work, and the scheduler that interleaves them.

Schedules. eager: asynchronous work lands when it is issued and each warp runs as far as it can, in order; early
overwrites show. latest: work lands only when a warp cannot go on without it, and warps run in reverse order; missing
waits show. random: warps switch at random points and work lands at random times, from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.expr import Buffer
from ...ir.region import root
from .barriers import Barriers
from .clocks import Clocks
from .faults import Fault, describe, fault
from .memory import Space
from .rendezvous import Rendezvous
from .rules import RULES
from .shadow import Shadow
from .warp import Blocked, RegFile, Warp

if TYPE_CHECKING:
    from .launch import Launch
    from .program import Program


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `kind`: issue, land, wait, arrive, sync or print; with its step, warp and statement."""

    step: int
    kind: str
    block: int
    warp: int
    stmt: Any
    text: str = ""
    lane: int | None = None

    @property
    def loc(self) -> Any:
        """The statement's place in the user's text."""
        return self.stmt.loc

    @property
    def what(self) -> str:
        """The statement in one phrase."""
        return describe(self.stmt)


@dataclass(slots=True, eq=False)
class Work:
    """Asynchronous work: `do` moves the data; it is called once, when the work lands."""

    do: Callable[[], None]
    warp: Warp
    stmt: Any
    landed: bool = False
    bar: Any = None  # the mbarrier that its bytes complete on


@dataclass(eq=False)
class Block:
    """State of one block while it runs. `number` counts blocks, `where` is its place in the grid."""

    launch: Launch
    program: Program
    number: int
    where: tuple[int, int, int]
    warps: list[Warp] = field(default_factory=list)
    acquired: set[int] = field(default_factory=set)
    pre_acquired: set[int] = field(default_factory=set)
    fenced: bool = False
    turn: int = 0  # meetings of the grid that are over
    arrived: set[Warp] = field(default_factory=set)  # warps that wait for the other blocks
    cluster: Any = None  # in which it runs together with others, as block `rank`
    rank: int = 0
    heard: dict[int, Any] = field(default_factory=dict)  # what it knows of the cluster's other blocks (barriers.learn)
    ended: bool = False

    def __post_init__(self) -> None:
        kernel, lanes = self.program.kernel, self.program.lanes
        self.threads = kernel.launch_threads or kernel.threads
        self.grid = self.launch.grid
        self.text = str(self.where[: max(1, len(kernel.grid))]).replace(",)", ")")
        self.barriers = Barriers(self)
        self.clocks = Clocks(self.threads, lanes, len(self.barriers.columns))
        size = kernel.shared_bytes
        shadow = Shadow(size, self.program.layout.label, across=self.program.stores_elsewhere)
        self.shared = Space("shared memory", np.zeros(size, dtype=np.uint8), 1, np.zeros(size, dtype=bool), shadow)
        shadow.begin(self)
        for space in self.launch.tensors.values():
            if space.shadow is not None:
                space.shadow.begin(self)
        self.rendezvous = Rendezvous(self)
        self.flying: list[Work] = []
        self.schedule = self.launch.schedule
        self.random = random.Random(f"{self.launch.seed} {self.number}")
        self.serial = 0
        self.meetings: dict[int, Any] = {}  # warpgroups on their way into a wgmma
        self.products: dict[int, list[Work]] = {}  # their wgmmas under way, in order
        self._make_warps(lanes)
        self.running: dict[Warp, Any] = dict.fromkeys(self.warps)  # warps that have not ended

    def _make_warps(self, lanes: int) -> None:
        scope = self.program.scope
        env: list[Any] = [None] * len(scope.slots)
        for var, value in self.launch.values.items():
            if var in scope.slots:
                env[scope.slots[var]] = value
        for var, value in zip(self.program.kernel.block_vars, self.where, strict=False):
            if var in scope.slots:
                env[scope.slots[var]] = value
        for index in range(self.clocks.warps):
            alive = np.arange(index * lanes, (index + 1) * lanes) < self.threads
            regs = [
                RegFile(b, b.static_size() or 1, lanes, b in scope.tracked)
                for b in sorted(scope.registers, key=scope.registers.__getitem__)
            ]
            self.warps.append(Warp(index, lanes, self, alive, list(env), [None] * len(env), regs))
        for w in self.warps:
            w.role_size = self.threads

    @contextmanager
    def visited_by(self, other: Block) -> Iterator[None]:
        """Another block of the cluster touches this one's shared memory: the race record is asked in its name."""
        self.shared.shadow.resume(other)
        try:
            yield
        finally:
            self.shared.shadow.resume(self)

    # --- services for rows -------------------------------------------------------------------------------------------
    def tensor(self, buffer: Buffer) -> Space:
        """The storage of a tensor, or of the one that a view is of."""
        return self.launch.tensors[root(buffer)]

    def spaces(self) -> Iterator[Space]:
        """All memories that the block can touch."""
        yield self.shared
        yield from self.launch.tensors.values()

    def report(self, error: Fault) -> None:
        """A fault after which the machine could go on: raised, or kept when faults are collected."""
        self.launch.report(error)

    def tick(self, w: Warp) -> None:
        """One more step of the run."""
        self.launch.tick(w)

    def event(self, w: Warp, kind: str, stmt: Any, text: str = "", lane: int | None = None) -> None:
        """Notes what a warp has done."""
        self.launch.events.append(Event(self.launch.steps, kind, self.number, w.index, stmt, text, lane))

    def submit(self, work: Work) -> Work:
        """Asynchronous work is issued: it lands now, later or at random."""
        self.event(work.warp, "issue", work.stmt)
        self.flying.append(work)
        if self.schedule == "eager" or (self.schedule == "random" and self.random.random() < 0.25):
            self.land(work)
        return work

    def land(self, work: Work) -> None:
        """Does asynchronous work, unless it is done."""
        if not work.landed:
            work.landed = True
            self.flying.remove(work)
            work.do()
            self.event(work.warp, "land", work.stmt)

    def next_serial(self) -> int:
        """A number that no other asynchronous work of the block has."""
        self.serial += 1
        return self.serial

    # --- scheduling ---------------------------------------------------------------------------------------------------
    def run(self) -> Iterator[None]:
        """Runs all warps to their end, pausing where all of them wait for the other blocks (of a cluster: where none
        can go on); a deadlock is a fault."""
        running = self.running = {w: self.program.code[1](w) for w in self.warps} if self.program.code[0] else {}
        if not running:
            for w in self.warps:
                self.program.code[1](w)
        step = self._random_round if self.schedule == "random" else self._ordered_round
        while running:
            if len(self.arrived) == len(self.warps):
                yield
                self.arrived.clear()
                self.turn += 1
            if not step(running) and not self._urge(running):
                if self.cluster is None:
                    raise self.deadlock(self.waiting())
                yield
        self._finish()

    def _ordered_round(self, running: dict[Warp, Iterator[Any]]) -> bool:
        order = list(running) if self.schedule == "eager" else list(reversed(running))
        moved = False
        for w in order:
            if w.blocked is None or w.blocked.ready():
                moved = True
                self._advance(w, running, None)
        return moved

    def _random_round(self, running: dict[Warp, Iterator[Any]]) -> bool:
        if self.flying and self.random.random() < 0.3:
            self.land(self.random.choice(self.flying))
        able = [w for w in running if w.blocked is None or w.blocked.ready()]
        if not able:
            return False
        self._advance(self.random.choice(able), running, self.random.choice((1, 1, 2, 4, 16, 64)))
        return True

    def _advance(self, w: Warp, running: dict[Warp, Iterator[Any]], budget: int | None) -> None:
        """Runs one warp until it blocks, ends or has passed `budget` switching points."""
        w.blocked = None
        agent = running[w]
        try:
            while budget is None or budget > 0:
                self.launch.tick(w)
                got = next(agent)
                if got is not None:
                    w.blocked = got
                    return
                if budget is not None:
                    budget -= 1
        except StopIteration:
            del running[w]

    def _urge(self, running: dict[Warp, Iterator[Any]]) -> bool:
        """Nobody can go on: land what somebody waits for, else anything that is still under way."""
        waiting = [w for w in running if w.blocked is not None]
        if self.schedule == "random":
            self.random.shuffle(waiting)
        if any(w.blocked.urge() for w in waiting if w.blocked is not None):
            return True
        if self.flying:
            self.land(self.flying[0])
            return True
        return False

    def waiting(self) -> str:
        """What each warp waits for, a line each."""
        lines = []
        for w in self.running:
            blocked: Blocked | None = w.blocked
            name = f"warp {w.index}" + (f" of role {w.role!r}" if w.role else "")
            where = f" at {w.at.loc}" if w.at is not None and w.at.loc is not None else ""
            lines.append(f"  {name}{where}: {blocked.what() if blocked else 'runs'}")
        return "\n".join(lines)

    def deadlock(self, lines: str) -> Fault:
        """The fault of warps that can never go on."""
        return fault(
            next(iter(self.running)),
            "deadlock",
            f"deadlock: no warp can go on\n{lines}\n ",
            rule="every wait is met by arrivals of other warps or by transfers under way",
            fix="look for the arrival, bytes or participant that one of these waits lacks",
        )

    def _finish(self) -> None:
        """The block's end: nothing may still use its shared memory."""
        for w in self.warps:
            for work in [*w.open["bulk"], *(x for g in w.groups["bulk"] for x in g.works)]:
                if not work.read_waited:
                    raise fault(
                        w,
                        "in_flight",
                        "the block ends while its store may still read shared memory",
                        at=work.stmt,
                        rule="WaitGroup(bulk) comes before the end of the kernel",
                        fix="commit and wait for the group",
                    )
                work.finish(work.lanes, False)
        for bar in self.barriers.all:
            if bar.loads > bar.seen:
                rule = RULES["transfer"]
                raise fault(
                    self.warps[0],
                    "in_flight",
                    f"the block ends while a transfer on {bar.name} that nobody has waited for may still be under way",
                    at=bar.load,
                    rule=str(rule),
                    fix="wait for the barrier's last phase, or issue no load beyond the last use",
                )
        for work in list(self.flying):
            self.land(work)
