"""Channels as rings of versions, barriers and turns: what the agents of a block share, and one agent's view of it.

An agent runs until it must wait. Its copies land at once, so a version that is used before its Wait, or written before
its Acquire, is found by who holds what, not by the values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...errors import Loc, SimulationError
from ...ir.expr import Buffer
from ...ir.kernel import Kernel
from ...ir.op import Impl, Op
from ...ir.planned import Channel
from .storage import Slot, tile_slot


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why an agent stopped."""

    what: str
    loc: Loc | None


@dataclass(eq=False, slots=True)
class ChannelState:
    """Running counts of a channel's uses, never reset; version n lives in slot n mod depth."""

    channel: Channel
    acquired: int = 0
    committed: int = 0
    groups: list[int | None] = field(default_factory=list)  # the version of every commit, None for an empty group
    waited: dict[str, int] = field(default_factory=dict)
    released: dict[str, int] = field(default_factory=dict)
    versions: list[dict[Buffer, Slot]] = field(default_factory=list)

    def free(self) -> bool:
        oldest = min((self.released.get(c, 0) for c in self.channel.consumers), default=self.acquired)
        return self.acquired - oldest < self.channel.depth


@dataclass(eq=False, slots=True)
class Barrier:
    """An mbarrier: `phase` counts completed phases, `pending` the arrivals still missing in this one."""

    count: int
    pending: int
    phase: int = 0

    def arrive(self, count: int) -> None:
        self.pending -= count
        while self.pending <= 0:
            self.pending += self.count
            self.phase += 1


class Shared:
    """What all agents of a chunk of blocks share. `ticks` grows with every event another agent may wait for."""

    def __init__(self, kernel: Kernel) -> None:
        self.states = {c: ChannelState(c, versions=[{} for _ in range(c.depth)]) for c in kernel.channels}
        self.by_buffer = {b: self.states[c] for c in kernel.channels for b in c.buffers}
        self.barriers: dict[tuple[Buffer, int], Barrier] = {}
        self.names: dict[int | str, Barrier] = {}
        self.agents = 1
        self.turns: dict[str, int] = {}
        self.peers: list[Shared] = []  # of the cluster's blocks by rank, where they wait for one another
        self.home: Any = None  # the state of the block, where its cluster's blocks wait for one another
        self.ended = False
        self.ticks = 0

    def barrier(self, buffer: Buffer, index: int) -> Barrier:
        found = self.barriers.get((buffer, index))
        if found is None:
            count = buffer.attr("count", (1,))[index]
            found = self.barriers[buffer, index] = Barrier(count, count)
        return found

    def named(self, number: int | str, count: int) -> Barrier:
        """The block barrier of this number, for `count` threads."""
        found = self.names.get(number)
        if found is None:
            found = self.names[number] = Barrier(count, count)
        return found


@dataclass(eq=False, slots=True)
class Flight:
    """An operation that was issued and has not completed."""

    op: Op
    impl: Impl
    reads: frozenset[Buffer]
    writes: frozenset[Buffer]
    landing: list[Any] = field(default_factory=list)  # stores that happen at completion


class Ring:
    """One agent's view: which versions it holds, and what it has in flight."""

    def __init__(self, shared: Shared, role: str) -> None:
        self.shared, self.role = shared, role
        self.flights: list[Flight] = []
        self.issuing: Impl | None = None
        self.loc: Loc | None = None  # of the statement that runs
        self.cluster_phase: int | None = None  # of the cluster's barrier when this agent arrived there

    def owns(self, buffer: Buffer) -> bool:
        return buffer in self.shared.by_buffer

    def slot(self, buffer: Buffer, write: bool) -> Slot | None:
        """The version of `buffer` that this agent holds; None when the buffer belongs to no channel."""
        if self.flights:
            self._check_flights(buffer, write)
        state = self.shared.by_buffer.get(buffer)
        if state is None:
            return None
        version = self._version(state, write)
        if version is None:
            raise SimulationError(
                f"role `{self.role}` {'writes' if write else 'reads'} `{buffer.name}` without holding a version of "
                f"channel `{state.channel.name}`",
                rule="a producer holds a version from Acquire to Commit, a consumer from Wait to Release",
                fix="the schedule misses an Acquire or a Wait, or releases too early",
                loc=self.loc,
            )
        return state.versions[version % state.channel.depth][buffer]

    def _version(self, state: ChannelState, write: bool) -> int | None:
        own = state.channel.producer == self.role and state.acquired > state.committed
        waited = state.waited.get(self.role, 0)
        held = waited - 1 if waited > state.released.get(self.role, 0) else None
        if own and (write or held is None):
            return state.acquired - 1
        return held

    def acquire(self, state: ChannelState, st: Any) -> None:
        """Takes the next version; its buffers start without contents."""
        version = state.versions[state.acquired % state.channel.depth]
        for buffer in state.channel.buffers:
            version[buffer] = tile_slot(buffer, st.shape(buffer), st.base)
        state.acquired += 1

    def commit(self, state: ChannelState, loc: Loc | None) -> None:
        """Makes the acquired version full. A group channel counts a commit without one as an empty group."""
        if state.channel.completion == "group" and state.acquired == state.committed:
            state.groups.append(None)
            return
        if state.acquired == state.committed:
            raise SimulationError(
                f"role `{self.role}` commits channel `{state.channel.name}` without having acquired a version",
                rule="every Commit follows its Acquire",
                fix="the schedule misses an Acquire",
                loc=loc,
            )
        buffers = set(state.channel.buffers)
        self.flights = [f for f in self.flights if not f.writes & buffers]
        state.groups.append(state.committed)
        state.committed += 1
        self.shared.ticks += 1

    def wait(self, state: ChannelState, ahead: int, loc: Loc | None) -> None:
        """Takes the next full version."""
        number = state.waited.get(self.role, 0)
        later = len(state.groups) - 1 - state.groups.index(number)
        if ahead > later:
            raise SimulationError(
                f"role `{self.role}` waits for version {number} of channel `{state.channel.name}` and lets {ahead} "
                f"later groups stay in flight, but only {later} were committed",
                rule="waiting with `ahead` completes a version only when that many groups were committed after it",
                fix="the schedule's wait count is too large",
                loc=loc,
            )
        state.waited[self.role] = number + 1

    def release(self, state: ChannelState, loc: Loc | None) -> None:
        """Gives back the oldest version that the agent holds."""
        released = state.released.get(self.role, 0)
        if released >= state.waited.get(self.role, 0):
            raise SimulationError(
                f"role `{self.role}` releases a version of channel `{state.channel.name}` that it does not hold",
                rule="every Release follows its Wait",
                fix="the schedule misses a Wait",
                loc=loc,
            )
        state.released[self.role] = released + 1
        self.shared.ticks += 1

    # --- operations in flight ------------------------------------------------------------------------------------
    def _check_flights(self, buffer: Buffer, write: bool) -> None:
        for flight in self.flights:
            if self.issuing is not None and self.issuing.engine == flight.impl.engine:
                continue  # one engine works in order
            if buffer in flight.writes or (write and buffer in flight.reads):
                state = self.shared.by_buffer.get(buffer)
                if state is not None and self._version(state, True) != self._version(state, False):
                    continue  # the flight fills one version, this access means another
                raise SimulationError(
                    f"`{buffer.name}` is {'written' if write else 'read'} while {flight.op.name} ({flight.impl.name}) "
                    "is still in flight",
                    rule="what an issued operation touches may be used only after its Complete",
                    fix="the schedule misses a Complete, or lets too many groups stay pending",
                    loc=self.loc or flight.op.loc,
                )

    def launch(self, op: Op, impl: Impl, landing: list[Any]) -> None:
        """Notes an issued operation."""
        effects = op.effects() if not impl.detail.get("staged") else ()  # a staged copy holds registers of its own
        reads = frozenset(a.buffer for a in effects if a.reads and impl.engine == "tensor")
        self.flights.append(Flight(op, impl, reads, frozenset(a.buffer for a in effects if a.writes), landing))

    def complete(self, op: Op, impl: Impl, pending: int) -> None:
        """Ends what the op's engine was given but the last `pending` groups; a copy through registers ends alone."""
        if impl.detail.get("staged"):
            done = [f for f in self.flights if f.op is op][:1]
        else:
            same = [f for f in self.flights if f.impl.engine == impl.engine and not f.impl.detail.get("staged")]
            done = same[: max(len(same) - pending, 0)]
        for flight in done:
            for land in flight.landing:
                land()
        self.flights = [f for f in self.flights if f not in done]
