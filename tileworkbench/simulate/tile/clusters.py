"""The blocks of a cluster as agents: where they arrive on one another's barriers or meet, they run at the same time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import LaunchError, Loc, SimulationError
from ...ir.expr import Call
from ...ir.kernel import Kernel
from ...ir.node import walk
from ...ir.op import Op
from ...ir.stmt import Alloc, Region
from .rings import Barrier, Shared, Waiting
from .state import State

if TYPE_CHECKING:
    from .program import Program

Body = Callable[[State], Iterator[Any]]
MEETINGS = ("cluster_sync", "cluster_arrive", "cluster_arrive_relaxed", "cluster_wait")


def meet(kernel: Kernel, in_step: bool) -> bool:
    """Whether the blocks of a cluster wait for one another. `in_step`: all blocks of the grid run together, statement
    by statement, so that they have met wherever they would."""
    if math.prod(kernel.cluster) == 1:
        return False
    barrier = next((n for n in walk(kernel.body) if isinstance(n, Alloc) and n.buffer.attr("cluster")), None)
    if in_step and barrier is not None:
        raise SimulationError(
            "T.sync_grid in a kernel whose blocks arrive on one another's barriers",
            rule="on the CPU target blocks that meet in the grid run in step", fix="run it on a GPU", loc=barrier.loc,
        )  # fmt: skip
    meetings = any(isinstance(n, Call) and n.fn in MEETINGS for n in walk(kernel.body))
    reaching = any(isinstance(n, Op) and n.reaches() for n in walk(kernel.body))
    return barrier is not None or ((meetings or reaching) and not in_step)


def boxes(kernel: Kernel, grid: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    """The clusters as boxes of the grid, slowest axis first."""
    sizes = tuple(reversed((*kernel.cluster, 1, 1)[: len(grid)]))
    if any(n % size for n, size in zip(grid, sizes, strict=True)):
        raise LaunchError(
            f"a grid of {tuple(reversed(grid))} blocks in clusters of {kernel.cluster}",
            rule="a grid is whole clusters", fix="use sizes that make whole clusters, or no cluster", loc=kernel.loc,
        )  # fmt: skip
    for place in np.ndindex(*(n // size for n, size in zip(grid, sizes, strict=True))):
        yield tuple((p * size, (p + 1) * size) for p, size in zip(place, sizes, strict=True))


def run(kernel: Kernel, states: list[State], program: Program) -> None:
    """The blocks of one cluster, by rank, each as far as it can go. One that waits is asked again after every step of
    another: a thread that polls a barrier misses none of its phases."""
    shared = [st.ring.shared for st in states]
    for own, st in zip(shared, states, strict=True):
        own.peers, own.home = shared, st
    running = {rank: program.run(st) for rank, st in enumerate(states)}
    while running:
        waiting: dict[int, Waiting] = {}
        for rank, steps in list(running.items()):
            before = sum(s.ticks for s in shared)
            reason = next(steps, None)
            if reason is None:
                del running[rank]
                shared[rank].ended = True
                break
            waiting[rank] = reason
            if sum(s.ticks for s in shared) != before:
                break
        else:
            raise _deadlock(waiting)


def _deadlock(waiting: dict[int, Waiting]) -> SimulationError:
    lines = [f"block {rank} of the cluster waits for {reason.what}" for rank, reason in waiting.items()]
    return SimulationError(
        "deadlock: " + "; ".join(lines),
        rule="some block of the cluster must always be able to go on",
        fix="match every wait with the arrivals that its barrier counts, and every T.cluster_sync in all blocks",
        loc=next(iter(waiting.values())).loc,
    )


def active_threads(st: State) -> np.ndarray:
    """Which threads of the agent take part, of the first block where several run together."""
    if not isinstance(st.mask, np.ndarray):
        return np.full(st.threads, st.mask is not False)
    found: np.ndarray = st.active((*st.mask.shape[:-1], st.threads)).reshape(-1, st.threads)[0]
    return found


def targets(st: State, rank: Any, taking_part: np.ndarray, region: Region) -> Iterator[tuple[Shared, int]]:
    """What the blocks share whose barrier the active threads mean, and how many mean it."""
    each = np.broadcast_to(np.asarray(rank).reshape(-1), taking_part.shape)[taking_part]
    for number, count in zip(*np.unique(each, return_counts=True), strict=True):
        yield member(st, int(number), f"an arrival on barrier `{region.buffer.name}`", region.loc), int(count)


def member(st: State, rank: int, doing: str, loc: Loc | None) -> Shared:
    """What the agents of the cluster's block of this rank share, if it has not ended."""
    peers = st.ring.shared.peers or [st.ring.shared]
    if not 0 <= rank < len(peers):
        raise SimulationError(
            f"{doing} of block {rank} of the cluster",
            rule=f"the cluster has {len(peers)} block{'s' * (len(peers) != 1)}",
            fix="T.ClusterKernel(…, cluster_dims=…) says how many there are",
            loc=loc,
        )
    if peers[rank].ended:
        raise SimulationError(
            f"{doing} of block {rank} of the cluster, which has ended",
            rule="a block's shared memory is there until it ends",
            fix="let the cluster's blocks meet before they end: T.cluster_sync()",
            loc=loc,
        )
    return peers[rank]


def compile_meeting(e: Call, program: Program) -> Body:
    """T.cluster_sync and its halves; nothing where the kernel's blocks run one by one."""

    def run_meeting(st: State) -> Iterator[Any]:
        ring, shared = st.ring, st.ring.shared
        if not shared.peers:
            return
        barrier: Barrier = shared.peers[0].named("cluster", program.threads * len(shared.peers))
        if e.fn != "cluster_wait":
            ring.cluster_phase = barrier.phase
            barrier.arrive(int(active_threads(st).sum()))
            shared.ticks += 1
        if e.fn in ("cluster_sync", "cluster_wait"):
            if ring.cluster_phase is None:
                raise SimulationError(
                    "T.cluster_wait without an arrival", rule="a thread waits for the meeting that it arrived at",
                    fix="T.cluster_arrive() before it", loc=e.loc,
                )  # fmt: skip
            mine, ring.cluster_phase = ring.cluster_phase, None
            while barrier.phase == mine:
                yield Waiting(f"{barrier.pending} more threads of the cluster", e.loc)

    return run_meeting
