"""Default layouts of parallel element loops: row-major iterations, a vector per thread, then threads, then steps.

Where the extents divide, the loop is a mode fragment (shifts and masks in generated code); otherwise it is linearised,
with // and % by the extents and a guard on the linear index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from math import gcd, prod
from typing import Any

from tileworkbench.errors import LayoutError
from tileworkbench.layout.distribution import (
    Distribution,
    row_major_coords,
    row_major_index,
)
from tileworkbench.layout.fragment import Axis, Fragment, Mode


@dataclass(frozen=True)
class LinearLoop(Distribution):
    """Iteration (step * threads + thread) * vector + lane, row-major over `shape`; guarded by linear < size.

    Register loops are (steps, vector), those of extent 1 left out. `thread_count` threads take part, some of them idle
    when there are too few iterations.
    """

    shape: tuple[int, ...]
    thread_count: int
    vector: int = 1
    base: int = 0

    @cached_property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def threads(self) -> int:
        return self.thread_count

    @property
    def replication(self) -> int:
        return 1

    def replica(self, thread: Any) -> Any:
        return 0

    @cached_property
    def steps(self) -> int:
        return -(-self.size // (self.thread_count * self.vector))

    @cached_property
    def reg_extents(self) -> tuple[int, ...]:
        return tuple(extent for extent in (self.steps, self.vector) if extent > 1)

    @property
    def guard_dims(self) -> tuple[int, ...]:
        # The leading coordinate keeps no modulo, so it alone tells that the linear index is past the end.
        return (0,) if self.steps * self.thread_count * self.vector > self.size else ()

    def _step_and_lane(self, reg_indices: Sequence[Any]) -> tuple[Any, Any]:
        step = reg_indices[0] if self.steps > 1 else 0
        return step, (reg_indices[-1] if self.vector > 1 else 0)

    def register(self, reg_indices: Sequence[Any]) -> Any:
        step, lane = self._step_and_lane(reg_indices)
        return row_major_index((step, lane), (self.steps, self.vector))

    def register_digits(self, register: Any) -> tuple[Any, ...]:
        step, lane = row_major_coords(register, (self.steps, self.vector))
        return tuple(d for d, extent in ((step, self.steps), (lane, self.vector)) if extent > 1)

    def linear(self, thread: Any, reg_indices: Sequence[Any] = ()) -> Any:
        """Row-major iteration number; polymorphic."""
        local = thread - self.base if self.base else thread
        step, lane = self._step_and_lane(reg_indices)
        return row_major_index((step, local, lane), (self.steps, self.thread_count, self.vector))

    def coordinate(self, thread: Any, reg_indices: Sequence[Any] = ()) -> tuple[Any, ...]:
        return row_major_coords(self.linear(thread, reg_indices), self.shape)

    def guards(self, thread: Any, reg_indices: Sequence[Any] = ()) -> tuple[Any, ...]:
        return (self.linear(thread, reg_indices) < self.size,) if self.guarded else ()

    def owner(self, *coords: Any) -> tuple[Any, Any]:
        linear = row_major_index(coords, self.shape)
        step, local, lane = row_major_coords(linear, (self.steps, self.thread_count, self.vector))
        register = row_major_index((step, lane), (self.steps, self.vector))
        return (local + self.base if self.base else local), register

    def replica_threads(self, *coords: Any) -> list[Any]:
        return [self.owner(*coords)[0]]


@cache
def loop_layout(shape: tuple[int, ...], threads: int, vector: int = 1) -> Fragment | LinearLoop:
    """The loop over `shape` on `threads` threads with runs of `vector` iterations of the last dimension per thread.

    The vector shrinks to a divisor of the last extent. LayoutError for an empty loop or no threads.
    """
    if not shape or min(shape) < 1 or threads < 1 or vector < 1:
        raise LayoutError(
            f"a parallel loop over {shape} on {threads} threads",
            rule="all counts are 1 or more",
        )
    run = gcd(vector, shape[-1])
    size = prod(shape)
    if size % (threads * run) == 0:
        modes = _aligned_modes(shape, [("reg", run), ("thread", threads), ("reg", size // (threads * run))])
        if modes is not None:
            return Fragment(shape, modes)
    return LinearLoop(shape, threads, run)


@cache
def padded_loop(shape: tuple[int, ...], threads: int, vector: int = 1) -> Fragment:
    """A mode form for any extents: each dimension is padded to what its share of the threads covers, and guarded.

    From the last dimension on, each takes the greatest divisor of the threads left that it can use; threads that no
    dimension can use are replicas. Costs more registers than `loop_layout` but can be reduced along any dimension.
    """
    if not shape or min(shape) < 1 or threads < 1 or vector < 1:
        raise LayoutError(f"a parallel loop over {shape} on {threads} threads", rule="all counts are 1 or more")
    modes: list[Mode] = []
    last = len(shape) - 1
    left, thread_stride, reg_stride = threads, 1, 1
    for dim in reversed(range(len(shape))):
        run = gcd(vector, shape[dim]) if dim == last else 1
        runs = shape[dim] // run
        wide = max(d for d in range(1, min(left, runs) + 1) if left % d == 0)
        steps = -(-runs // wide)
        modes += [
            Mode(run, "reg", reg_stride, dim, 1),
            Mode(wide, "thread", thread_stride, dim, run),
            Mode(steps, "reg", reg_stride * run, dim, run * wide),
        ]
        left, thread_stride, reg_stride = left // wide, thread_stride * wide, reg_stride * run * steps
    return Fragment(shape, (*modes, Mode(left, "thread", thread_stride)))


def _aligned_modes(shape: tuple[int, ...], sections: list[tuple[Axis, int]]) -> tuple[Mode, ...] | None:
    """Modes of the row-major index cut both into sections and into dimensions; None when the cuts do not nest."""
    axis_cuts, dim_cuts = [1], [1]
    for _, extent in sections:
        axis_cuts.append(axis_cuts[-1] * extent)
    for extent in reversed(shape):
        dim_cuts.append(dim_cuts[-1] * extent)
    cuts = sorted({*axis_cuts, *dim_cuts})
    if any(high % low for low, high in pairwise(cuts)):
        return None
    modes = []
    strides: dict[str, int] = {"reg": 1, "thread": 1}
    for low, high in pairwise(cuts):
        section = sum(cut <= low for cut in axis_cuts) - 1
        dim = len(shape) - sum(cut <= low for cut in dim_cuts)
        axis = sections[section][0]
        modes.append(
            Mode(
                high // low,
                axis,
                strides[axis],
                dim,
                low // dim_cuts[len(shape) - 1 - dim],
            )
        )
        strides[axis] *= high // low
    return tuple(modes)
