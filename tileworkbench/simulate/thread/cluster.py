"""The blocks of a cluster: they run at the same time, arrive on one another's barriers and meet.

A block that arrives at another's barrier hands over its clocks; after a wait for the phase, what they cover is over
for all of the waiting block's warps. After a meeting all that the blocks have done is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import LaunchError
from ...ir.instr import Sync
from .barriers import MBarrier, learn
from .block import Block
from .faults import fault
from .warp import Blocked, Warp

if TYPE_CHECKING:
    from .launch import Launch
    from .program import Program


@dataclass(eq=False)
class Cluster:
    """Its blocks by rank. `turn` counts the meetings that are over, `arrived` who has come to the next one."""

    blocks: list[Block] = field(default_factory=list)
    turn: int = 0
    arrived: dict[Warp, int] = field(default_factory=dict)  # the meeting that a warp has come to and not waited for
    handed: dict[Block, Any] = field(default_factory=dict)
    over: dict[Block, Any] = field(default_factory=dict)

    def settle(self) -> None:
        """The meeting is over when every warp has come to it or has ended."""
        coming = (w for block in self.blocks for w in block.running if self.arrived.get(w) != self.turn)
        if next(coming, None) is not None:
            return
        self.turn, self.over, self.handed = self.turn + 1, self.handed, {}
        spaces = [*self.blocks[0].launch.tensors.values(), *(block.shared for block in self.blocks)]
        for shadow in (space.shadow for space in spaces):
            if shadow is not None and shadow.across:
                shadow.met([block.number for block in self.blocks])


def sync(s: Sync) -> Callable[[Warp], Iterator[Any]]:
    """Sync(cluster), and its halves."""

    def run(w: Warp) -> Iterator[Any]:
        w.at = s
        cluster: Cluster = w.block.cluster
        if s.mode != "wait":
            _arrive(w, cluster)
        if s.mode == "arrive":
            return
        mine = cluster.arrived.get(w)
        if mine is None:
            raise fault(
                w, "barrier", "the warp waits for the cluster without having arrived",
                rule="a thread waits for the meeting that it arrived at",
            )  # fmt: skip
        cluster.settle()
        while cluster.turn == mine:
            yield Blocked(lambda: _over(cluster, mine), lambda: "waits for the other blocks of the cluster")
        del cluster.arrived[w]
        order, fenced = cluster.over[w.block]
        w.block.clocks.acquire(w.index, w.threads[w.alive], order, fenced)
        w.block.event(w, "sync", s)

    return run


def _arrive(w: Warp, cluster: Cluster) -> None:
    if not w.full:
        raise fault(
            w, "divergent", "the warp arrives at the cluster's barrier while some of its lanes are elsewhere",
            rule="all lanes of a warp reach a barrier together", lanes=w.alive & ~w.mask,
        )  # fmt: skip
    if w in cluster.arrived:
        raise fault(
            w, "barrier", "the warp arrives twice at the cluster's barrier",
            rule="a thread waits for a meeting before it arrives at the next",
        )  # fmt: skip
    cluster.arrived[w] = cluster.turn
    order, fenced = w.block.clocks.release(w.index, w.threads[w.alive])
    before = cluster.handed.get(w.block)
    if before is not None:
        order, fenced = np.maximum(before[0], order), np.maximum(before[1], fenced)
    cluster.handed[w.block] = (order, fenced)


def _over(cluster: Cluster, turn: int) -> bool:
    cluster.settle()
    return cluster.turn != turn


def member(w: Warp, rank: int, doing: str) -> Block:
    """The block of the warp's cluster with this rank, whose shared memory is still there."""
    blocks: list[Block] = w.block.cluster.blocks if w.block.cluster is not None else [w.block]
    if not 0 <= rank < len(blocks):
        raise fault(
            w, "bounds", f"{doing} of block {rank} of the cluster",
            rule=f"the cluster has {len(blocks)} block{'s' * (len(blocks) != 1)}",
        )  # fmt: skip
    if blocks[rank].ended:
        raise fault(
            w, "barrier", f"{doing} of block {rank} of the cluster, which has ended",
            rule="a block's shared memory is there until it ends",
            fix="let the cluster's blocks meet before they end: Sync(cluster)",
        )  # fmt: skip
    return blocks[rank]


def arrive_at(w: Warp, bar: MBarrier, ranks: Any, lanes: Any) -> None:
    """Each of the lanes arrives on the barrier of its block `ranks` that stands where `bar` stands in the own one."""
    for rank in np.unique(ranks):
        block, threads = member(w, int(rank), f"an arrival on {bar.name}"), w.threads[lanes[ranks == rank]]
        if block is w.block:
            block.barriers.check_use(w, bar, threads)
            block.barriers.arrive(w, bar, len(threads), block.clocks.release(w.index, threads))
            continue
        _arrive_elsewhere(w, block, block.barriers.all[bar.agent - block.clocks.first_barrier], threads)


def _arrive_elsewhere(w: Warp, block: Block, there: MBarrier, threads: Any) -> None:
    if there.init is None or not there.init_fenced:
        raise fault(
            w, "barrier", f"{there.name} of another block is used before it is initialised",
            rule="the cluster meets after its barriers are initialised", fix="add a Sync(cluster) after the BarInit",
        )  # fmt: skip
    order, _ = w.block.clocks.release(w.index, threads)
    learn(there.heard, {**w.block.heard, w.block.number: order})
    nothing = np.zeros(block.clocks.columns, dtype=np.int32)
    block.barriers.arrive(w, there, len(threads), (nothing, nothing.copy()))


def run(launch: Launch, program: Program, places: dict[tuple[int, ...], int], wanted: Any) -> None:
    """All clusters, one after another."""
    if wanted is not None:
        raise LaunchError(
            "some blocks of a kernel whose blocks form clusters", rule="a cluster's blocks run together", fix="run all"
        )
    sizes = (*program.kernel.cluster, 1, 1, 1)[: len(next(iter(places)))]
    found: dict[tuple[int, ...], list[tuple[int, tuple[int, ...]]]] = {}
    for place, number in places.items():
        found.setdefault(tuple(p // size for p, size in zip(place, sizes, strict=True)), []).append((number, place))
    for members in found.values():
        if len(members) != np.prod(sizes):
            raise LaunchError(
                f"a grid of {launch.grid} blocks in clusters of {program.kernel.cluster}",
                rule="a grid is whole clusters", fix="use sizes that make whole clusters, or no cluster",
            )  # fmt: skip
        cluster = Cluster()
        for rank, (number, place) in enumerate(members):
            block = Block(launch, program, number, place, cluster=cluster, rank=rank)  # type: ignore[arg-type]
            cluster.blocks.append(block)
        _together(launch, cluster)


def _together(launch: Launch, cluster: Cluster) -> None:
    """Each block as far as it can go. After every step of one, those that wait are asked again from the first: a
    thread that polls a barrier misses none of its phases."""
    running = {block: block.run() for block in cluster.blocks}
    shadows = [space.shadow for space in launch.tensors.values() if space.shadow is not None]
    while running:
        order = list(running) if launch.schedule != "latest" else list(reversed(running))
        for block in order:
            for shadow in shadows:
                shadow.resume(block)
            before = launch.steps
            if next(running[block], block) is block:
                del running[block]
                block.ended = True
                break
            if launch.steps != before:
                break
        else:
            raise _deadlock([block for block in cluster.blocks if block in running])


def _deadlock(blocks: list[Block]) -> Exception:
    return blocks[0].deadlock("\n".join(f" block {b.rank} of the cluster\n{b.waiting()}" for b in blocks))
