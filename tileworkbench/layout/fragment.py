"""Fragments in mode form: a tile over threads and registers as a product of strided modes.

Each mode carries an index i in range(extent). It adds i * stride to the thread number (axis "thread") or to the
register number (axis "reg"), and i * step to the coordinate `dim`. A thread mode with dim None is a replica axis: its
threads hold the same elements. The strides of each axis and the steps along each dimension form a mixed radix without
holes; that is exactly what makes the map a bijection (up to replicas), so construction checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np

from tileworkbench.errors import LayoutError
from tileworkbench.layout.distribution import (
    Distribution,
    IntArray,
    read_only,
    split_index,
    weighted_sum,
)

Axis = Literal["thread", "reg"]


@dataclass(frozen=True, slots=True)
class Mode:
    """`extent` indices with weight `stride` in the thread or register number and `step` along dimension `dim`."""

    extent: int
    axis: Axis
    stride: int
    dim: int | None = None
    step: int = 0


def thread_mode(extent: int, stride: int, dim: int | None = None, step: int = 0) -> Mode:
    """A mode whose index is a part of the thread index."""
    return Mode(extent, "thread", stride, dim, step)


def reg_mode(extent: int, stride: int, dim: int, step: int) -> Mode:
    """A mode whose index is a part of the register index."""
    return Mode(extent, "reg", stride, dim, step)


@dataclass(frozen=True)
class Fragment(Distribution):
    """A tile of `shape` over threads and registers. Modes are kept sorted: thread modes, then register modes, each
    from the greatest stride down; modes of extent 1 are dropped. Raises LayoutError when the modes are not a bijection
    (up to replicas) onto extents that cover the shape."""

    shape: tuple[int, ...]
    modes: tuple[Mode, ...]
    base: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(int(extent) for extent in self.shape))
        kept = sorted(
            (m for m in self.modes if m.extent != 1),
            key=lambda m: (m.axis == "reg", -m.stride),
        )
        object.__setattr__(self, "modes", tuple(kept))
        self.check()

    @cached_property
    def thread_modes(self) -> tuple[Mode, ...]:
        """Thread modes, greatest stride first."""
        return tuple(m for m in self.modes if m.axis == "thread")

    @cached_property
    def reg_modes(self) -> tuple[Mode, ...]:
        """Register modes, greatest stride (outermost loop) first."""
        return tuple(m for m in self.modes if m.axis == "reg")

    @cached_property
    def threads(self) -> int:
        """Threads that hold elements, replicas included."""
        return prod(m.extent for m in self.thread_modes)

    @cached_property
    def replication(self) -> int:
        """How many threads hold each element."""
        return prod(m.extent for m in self.thread_modes if m.dim is None)

    @cached_property
    def reg_extents(self) -> tuple[int, ...]:
        """Extents of the register modes, outermost first."""
        return tuple(m.extent for m in self.reg_modes)

    def dim_modes(self, dim: int) -> tuple[Mode, ...]:
        """The modes that move along `dim`, smallest step first."""
        return tuple(sorted((m for m in self.modes if m.dim == dim), key=lambda m: m.step))

    @cached_property
    def covered(self) -> tuple[int, ...]:
        """Extents that the modes reach: at least the shape."""
        return tuple(prod(m.extent for m in self.modes if m.dim == dim) for dim in range(self.rank))

    @cached_property
    def guard_dims(self) -> tuple[int, ...]:
        """Dimensions that the modes cover beyond the shape."""
        return tuple(d for d in range(self.rank) if self.covered[d] > self.shape[d])

    def check(self) -> None:
        """Prove the bijection structurally; LayoutError names the first gap."""
        for mode in self.modes:
            if mode.extent < 1 or (mode.dim is not None and not 0 <= mode.dim < self.rank):
                raise LayoutError(f"{mode} does not fit a tile of shape {self.shape}")
            if mode.dim is None and mode.axis == "reg":
                raise LayoutError(
                    f"{mode} repeats an element in a register",
                    rule="only threads may hold replicas",
                )
        for axis, modes in (
            ("thread", self.thread_modes),
            ("register", self.reg_modes),
        ):
            _check_radix(f"{axis} strides", [(m.stride, m.extent) for m in reversed(modes)])
        for dim in range(self.rank):
            _check_radix(
                f"steps along dimension {dim}",
                [(m.step, m.extent) for m in self.dim_modes(dim)],
            )
            if self.covered[dim] < self.shape[dim]:
                raise LayoutError(f"the modes cover {self.covered[dim]} of {self.shape[dim]} along dimension {dim}")

    def thread_digits(self, thread: Any) -> tuple[Any, ...]:
        """The index of each thread mode, in the order of `thread_modes`; polymorphic."""
        local = thread - self.base if self.base else thread
        return split_index(local, [(m.stride, m.extent) for m in self.thread_modes])

    def register_digits(self, register: Any) -> tuple[Any, ...]:
        """The index of each register mode; polymorphic."""
        return split_index(register, [(m.stride, m.extent) for m in self.reg_modes])

    def register(self, reg_indices: Sequence[Any]) -> Any:
        """The register of these mode indices; polymorphic."""
        return weighted_sum([(i, m.stride) for i, m in zip(reg_indices, self.reg_modes, strict=True)])

    def coordinate(self, thread: Any, reg_indices: Sequence[Any] = ()) -> tuple[Any, ...]:
        """The element's place in the tile, from a thread and the register modes' indices; polymorphic."""
        indices = (*self.thread_digits(thread), *reg_indices)
        placed = list(zip(indices, self.modes, strict=True))
        return tuple(weighted_sum([(i, m.step) for i, m in placed if m.dim == dim]) for dim in range(self.rank))

    def owner(self, *coords: Any) -> tuple[Any, Any]:
        """(replica-0 thread, register) of an element; polymorphic."""
        terms: dict[str, list[tuple[Any, int]]] = {"thread": [], "reg": []}
        for dim, coord in enumerate(coords):
            modes = self.dim_modes(dim)
            for digit, mode in zip(
                split_index(coord, [(m.step, m.extent) for m in modes]),
                modes,
                strict=True,
            ):
                terms[mode.axis].append((digit, mode.stride))
        thread = weighted_sum(terms["thread"])
        return (thread + self.base if self.base else thread), weighted_sum(terms["reg"])

    def home(self, thread: Any) -> Any:
        """The replica-0 thread that holds what `thread` holds; polymorphic."""
        digits = zip(self.thread_digits(thread), self.thread_modes, strict=True)
        local = weighted_sum([(i, m.stride) for i, m in digits if m.dim is not None])
        return local + self.base if self.base else local

    def replica(self, thread: Any) -> Any:
        """Which replica `thread` is, 0 … replication - 1; side effects belong to replica 0; polymorphic."""
        digits = list(zip(self.thread_digits(thread), self.thread_modes, strict=True))
        terms, weight = [], 1
        for digit, mode in reversed(digits):
            if mode.dim is None:
                terms.append((digit, weight))
                weight *= mode.extent
        return weighted_sum(terms)

    @cached_property
    def replica_offsets(self) -> tuple[int, ...]:
        """Thread distances from replica 0 to each replica, 0 first."""
        axes = [[i * m.stride for i in range(m.extent)] for m in self.thread_modes if m.dim is None]
        return tuple(sum(offsets) for offsets in product(*axes))

    def replica_threads(self, *coords: Any) -> list[Any]:
        """All threads that hold an element, replica 0 first."""
        thread, _ = self.owner(*coords)
        return [thread + offset if offset else thread for offset in self.replica_offsets]

    def locate(self, thread: Any, *coords: Any) -> tuple[Any, Any]:
        """(register, whether `thread` holds the element); polymorphic."""
        owner, register = self.owner(*coords)
        return register, self.home(thread) == owner

    @cached_property
    def _table(self) -> IntArray:
        by_thread = _partial_coords(self.thread_modes, self.threads, self.rank)
        by_register = _partial_coords(self.reg_modes, self.registers, self.rank)
        return read_only(by_thread[:, None, :] + by_register[None, :, :])


def _check_radix(what: str, pairs: list[tuple[int, int]]) -> None:
    expected = 1
    for stride, extent in pairs:
        if stride != expected:
            raise LayoutError(
                f"{what} have a gap: {stride} where {expected} is next",
                rule="a mixed radix, no holes",
            )
        expected *= extent


def _partial_coords(modes: tuple[Mode, ...], count: int, rank: int) -> IntArray:
    """Contribution of one axis to the coordinates: int32 (count, rank)."""
    index = np.arange(count, dtype=np.int32)
    coords = np.zeros((count, rank), dtype=np.int32)
    for mode in modes:
        if mode.dim is not None:
            coords[:, mode.dim] += index // mode.stride % mode.extent * mode.step
    return coords


@cache
def replicated(shape: tuple[int, ...], threads: int) -> Fragment:
    """Every thread holds the whole tile, row-major in its registers."""
    modes: list[Mode] = [thread_mode(threads, 1)]
    for dim, extent in enumerate(shape):
        modes.append(reg_mode(extent, prod(shape[dim + 1 :]), dim, 1))
    return Fragment(shape, tuple(modes))


def same(a: Distribution, b: Distribution) -> bool:
    """Both put the same element into every (thread, register), by table."""
    if a is b or a == b:
        return True
    if (a.shape, a.threads, a.registers, a.base) != (
        b.shape,
        b.threads,
        b.registers,
        b.base,
    ):
        return False
    valid = a.valid()
    return bool(np.array_equal(valid, b.valid()) and np.array_equal(a.table()[valid], b.table()[valid]))
