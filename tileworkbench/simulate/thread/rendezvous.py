"""Thread barriers of a block: warp, role, block and named ones, with thread counts as the hardware counts them.

A barrier completes when as many threads have arrived as it expects; all that took part are then ordered. Waiting also
arrives (bar.sync); mode "arrive" does not wait (bar.arrive). A warp arrives as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.instr import Sync
from .faults import fault, place
from .warp import Blocked

if TYPE_CHECKING:
    from .block import Block
    from .warp import Warp


@dataclass(slots=True, eq=False)
class Point:
    """One barrier in one generation: who has arrived, what they handed over, and the generation it is in."""

    expected: int = 0
    arrived: int = 0
    generation: int = 0
    warps: list[Warp] = field(default_factory=list)
    first: Any = None
    order: Any = None
    fenced: Any = None
    done: tuple[Any, Any] | None = None


class Rendezvous:
    """The block's barriers by key: ("block",), ("role", name) or ("id", n)."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.points: dict[tuple[Any, ...], Point] = {}

    def key(self, w: Warp, s: Sync) -> tuple[Any, ...]:
        if s.id is not None:
            return ("id", s.id)
        return ("block",) if s.who == "block" or not w.role else ("role", w.role)

    def expected(self, w: Warp, s: Sync) -> int:
        if s.threads is not None:
            return s.threads
        return self.block.threads if s.who == "block" or not w.role else w.role_size

    def name(self, key: tuple[Any, ...]) -> str:
        return "the block barrier" if key[0] == "block" else f"barrier {key[0]} {key[1]!r}"

    def arrive(self, w: Warp, s: Sync) -> tuple[Point, int]:
        """The warp arrives; the barrier completes when it was the last."""
        if not w.full:
            raise fault(
                w,
                "divergent",
                "the warp arrives at a barrier while some of its lanes are elsewhere",
                rule="all lanes of a warp reach a barrier together",
                lanes=w.alive & ~w.mask,
            )
        key = self.key(w, s)
        if key == ("id", 0):
            key = ("block",)  # id 0 is what __syncthreads uses
        point = self.points.setdefault(key, Point())
        expected = self.expected(w, s)
        if point.arrived == 0:
            point.expected, point.first = expected, s
        elif point.expected != expected:
            raise fault(
                w,
                "divergent",
                f"{self.name(key)} counts {expected} threads here and {point.expected} in {place(point.first)}",
                rule="all uses of a barrier in one phase name the same number of threads",
                other=point.first,
            )
        if w in point.warps:
            raise fault(
                w,
                "divergent",
                f"the warp arrives twice at {self.name(key)} in one phase",
                rule="a warp arrives once a phase",
                other=point.first,
            )
        point.warps.append(w)
        point.arrived += int(w.alive.sum())
        threads = w.threads[w.alive]
        order, fenced = self.block.clocks.release(w.index, threads)
        point.order = order if point.order is None else np.maximum(point.order, order)
        point.fenced = fenced if point.fenced is None else np.maximum(point.fenced, fenced)
        generation = point.generation
        if point.arrived > point.expected:
            raise fault(
                w,
                "divergent",
                f"{point.arrived} threads arrive at {self.name(key)}, which counts {point.expected}",
                rule="a barrier's thread count is the number of threads that reach it",
            )
        if point.arrived == point.expected:
            point.done = (point.order, point.fenced)
            point.generation += 1
            point.arrived, point.warps, point.order, point.fenced = 0, [], None, None
        return point, generation

    def sync(self, w: Warp, s: Sync) -> Iterator[Any]:
        """The whole statement, blocking where it waits."""
        if s.who == "warp":
            self._warp(w)
            return
        point, generation = self.arrive(w, s)
        self.block.event(w, "sync", s)
        if s.mode == "arrive":
            return
        while point.generation == generation:
            yield Blocked(lambda: point.generation != generation, lambda: self._waits(w, s, point))
        order, fenced = point.done  # type: ignore[misc]
        self.block.clocks.acquire(w.index, w.threads[w.alive], order, fenced)

    def _warp(self, w: Warp) -> None:
        if not w.full:
            raise fault(
                w,
                "divergent",
                "the warp synchronises while some of its lanes are elsewhere",
                lanes=w.alive & ~w.mask,
                rule="all lanes of a warp reach a warp barrier together",
            )
        threads = w.threads[w.alive]
        self.block.clocks.acquire(w.index, threads, *self.block.clocks.release(w.index, threads))

    def _waits(self, w: Warp, s: Sync, point: Point) -> str:
        return f"waits at {self.name(self.key(w, s))} with {point.arrived} of {point.expected} threads" + (
            f" ({s.reason})" if s.reason else ""
        )
