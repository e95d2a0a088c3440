"""Roles as agents that run one after another until each must wait; the statements of the planned level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SimulationError
from ...ir.expr import Call, Const, Load
from ...ir.instr import Fence, Sync
from ...ir.node import walk
from ...ir.planned import Acquire, Commit, Complete, Issue, Release, Role, Turn, Wait
from ...ir.stmt import Region, Stmt, Store
from ...ops.warpgroup import WarpGroups
from .affine import Affine
from .env import Env
from .rings import Ring, Waiting
from .state import State, both
from .storage import Slot
from .taint import refuse

if TYPE_CHECKING:
    from .program import Program

Body = Callable[[State], Iterator[Any]]
AGENTS = (Role, WarpGroups)


def compile_agents(agents: list[Any], depth: int, program: Program) -> Body:
    """Neighbouring roles, run at the same time."""
    bodies = [program.body(a.body, depth) for a in agents]
    seen = {n.buffer: None for n in walk(tuple(agents)) if isinstance(n, (Load, Store, Region))}
    common = [b for b in seen if b.space in ("shared", "fragment")]

    def run(st: State) -> Iterator[Any]:
        for buffer in common:  # comes into being before the agents part
            if not st.ring.owns(buffer):
                st.slot(buffer)
        states = [_agent(st, a, program) for a in agents]
        st.ring.shared.agents = len(agents)
        running = {n: body(s) for n, (body, s) in enumerate(zip(bodies, states, strict=True))}
        while running:
            before, waiting = st.ring.shared.ticks, {}
            for n, steps in list(running.items()):
                reason = next(steps, None)
                if reason is None:
                    del running[n]
                    st.ring.shared.ticks += 1
                else:
                    waiting[n] = reason
            if waiting and st.ring.shared.ticks == before:
                # Nobody here can go on; an agent outside may still help.
                if st.ring.role or st.ring.shared.peers:
                    yield next(iter(waiting.values()))
                else:
                    raise _deadlock({_name(agents[n]): reason for n, reason in waiting.items()})

    return run


def _name(agent: Any) -> str:
    return agent.name if isinstance(agent, Role) else "warpgroups " + ", ".join(map(str, agent.groups))


def _agent(st: State, agent: Any, program: Program) -> State:
    """The agent's own state: variables and masks of its own, tiles shared with the others."""
    made = replace(st, vars=dict(st.vars), taints=dict(st.taints), spread=[], loop=None, deferred=None)
    made.base, made.tiles = st.base, dict(st.tiles)
    made.ring = Ring(st.ring.shared, _name(agent))
    made.ring.cluster_phase = st.ring.cluster_phase
    if isinstance(agent, WarpGroups):
        first = min(agent.groups) * agent.unit
        made.threads = min(agent.unit * len(agent.groups), max(st.threads - first, 1))
        made.sizes = (*st.sizes[:-1], made.threads)
        for var in program.thread_vars[:1]:
            made.vars[var] = _threads(first, made.threads, st.base)
        made.tiles |= {b: _own_threads(s, first, made.threads) for b, s in st.tiles.items() if s.private}
    made.env = Env(made, program)
    return made


def _threads(first: int, count: int, rank: int) -> Any:
    sizes = (1,) * (rank - 1) + (count,)
    return Affine(first, tuple(int(a == rank - 1) for a in range(rank)), sizes) if count > 1 else first


def _own_threads(slot: Slot, first: int, count: int) -> Slot:
    """A copy of a private buffer for some of the block's threads."""
    axis = slot.lead - 1
    cut = (*(slice(None),) * axis, slice(first, first + count) if slot.array.shape[axis] > 1 else slice(None))
    undefined = slot.undefined[cut] if isinstance(slot.undefined, np.ndarray) else slot.undefined
    return replace(slot, array=slot.array[cut], owned=False, undefined=undefined)


def _deadlock(waiting: dict[str, Waiting]) -> SimulationError:
    lines = [
        f"{role} waits for {reason.what}" + (f" at {reason.loc}" if reason.loc else "")
        for role, reason in waiting.items()
    ]
    first = next(iter(waiting.values()))
    return SimulationError(
        "deadlock: " + "; ".join(lines),
        rule="some role must always be able to go on",
        fix="match every wait with a commit, release or arrival of another role",
        loc=first.loc,
    )


def stuck(reason: Any) -> SimulationError:
    """A wait outside all roles that nobody can end."""
    return _deadlock({"the kernel": reason})


def _acquire(s: Acquire, depth: int, program: Program) -> Body:
    def run(st: State) -> Iterator[Any]:
        state = st.ring.shared.states[s.channel]
        if state.acquired > state.committed:
            raise SimulationError(
                f"channel `{s.channel.name}` is acquired twice without a Commit",
                rule="one version at a time",
                loc=s.loc,
            )
        while not state.free():
            yield Waiting(f"a free version of channel `{s.channel.name}` (all {s.channel.depth} are in use)", s.loc)
        st.ring.acquire(state, st)

    return run


def _wait(s: Wait, depth: int, program: Program) -> Body:
    def run(st: State) -> Iterator[Any]:
        state, ring = st.ring.shared.states[s.channel], st.ring
        number = state.waited.get(ring.role, 0)
        while state.committed <= number:
            yield Waiting(f"version {number} of channel `{s.channel.name}` ({state.committed} are committed)", s.loc)
        ring.wait(state, s.ahead, s.loc)

    return run


def _turn(s: Turn, depth: int, program: Program) -> Body:
    def run(st: State) -> Iterator[Any]:
        shared, ring = st.ring.shared, st.ring
        mine = s.roles.index(ring.role) if ring.role in s.roles else 0
        if s.action == "give":
            shared.turns[s.name] = (mine + 1) % len(s.roles)
            shared.ticks += 1
            return
        while shared.turns.get(s.name, 0) != mine:
            yield Waiting(f"its turn of `{s.name}`", s.loc)

    return run


def _issue(s: Issue, depth: int, program: Program) -> Callable[[State], None]:
    run_op = program.operation(s.op, depth)
    pred = program.expression(s.pred, depth) if s.pred is not None else None
    tainted = program.taint(s.pred, depth) if s.pred is not None else None
    staged = bool(s.impl.detail.get("staged"))

    def run(st: State) -> None:
        saved = st.mask
        if pred is not None and tainted is not None:
            refuse(st, tainted, s.pred, "a predicate", s.loc)  # type: ignore[arg-type]
            st.mask = both(saved, pred(st))
        try:
            if st.mask is False:
                return
            ring = st.ring
            ring.issuing, ring.loc = s.impl, s.op.loc or s.loc
            landing: list[Any] = []
            st.deferred = landing if staged else None
            run_op(st)
            st.deferred, ring.issuing = None, None
            ring.launch(s.op, s.impl, landing)
        finally:
            st.mask, st.deferred, st.ring.issuing = saved, None, None

    return run


def _complete(s: Complete, depth: int, program: Program) -> Callable[[State], None]:
    return lambda st: st.ring.complete(s.op, s.impl, s.pending)


def compile_named_barrier(e: Call, program: Program) -> Body:
    """A block barrier between agents; nothing where one agent runs all threads."""
    arrives_only = e.fn == "named_barrier_arrive"
    numbers = [a.value if isinstance(a, Const) else 0 for a in e.args]
    number = int(numbers[0]) if numbers else 0

    def run(st: State) -> Iterator[Any]:
        if not st.ring.role:
            return
        shared = st.ring.shared
        barrier = shared.named(number, int(numbers[1]) if len(numbers) > 1 else program.threads)
        mine = barrier.phase
        barrier.arrive(st.threads)
        shared.ticks += 1
        while not arrives_only and barrier.phase == mine:
            yield Waiting(f"{barrier.pending} more threads at barrier {number}", e.loc)

    return run


def _sync(s: Sync, depth: int, program: Program) -> Body:
    """A rendezvous of all agents of the block; inside one agent all threads are together anyway."""

    def run(st: State) -> Iterator[Any]:
        shared = st.ring.shared
        if s.who in ("warp", "role") or shared.agents < 2:
            return
        barrier = shared.named("block", shared.agents)
        mine = barrier.phase
        if s.mode != "wait":
            barrier.arrive(1)
            shared.ticks += 1
        while s.mode != "arrive" and barrier.phase == mine:
            yield Waiting("the other roles at a block barrier", s.loc)

    return run


WAITING: dict[type, Callable[..., Body]] = {Acquire: _acquire, Wait: _wait, Turn: _turn, Sync: _sync}
PLAIN: dict[type, Callable[..., Callable[[State], None]]] = {
    Commit: lambda s, depth, program: lambda st: st.ring.commit(st.ring.shared.states[s.channel], s.loc),
    Release: lambda s, depth, program: lambda st: st.ring.release(st.ring.shared.states[s.channel], s.loc),
    Issue: _issue,
    Complete: _complete,
    Fence: lambda s, depth, program: lambda st: None,
}


def grouped(stmts: tuple[Stmt, ...]) -> Iterator[list[Stmt]]:
    """The statements one by one, neighbouring agents together unless one starts after the others."""
    together: list[Stmt] = []
    for s in stmts:
        if isinstance(s, AGENTS):
            if together and s.after:
                yield together
                together = []
            together.append(s)
            continue
        if together:
            yield together
            together = []
        yield [s]
    if together:
        yield together
