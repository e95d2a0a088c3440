"""What one agent knows while it runs a chunk of blocks: variables, the active points, its buffers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Loc, ResourceError, SimulationError
from ...ir.expr import Buffer, Var
from .storage import Slot, tile_slot
from .views import seen_as, view_slot

if TYPE_CHECKING:
    from .env import Env
    from .rings import Ring


@dataclass(eq=False, slots=True)
class LoopFrame:
    """Points that left the innermost loop (`broken`) or the rest of this trip (`skipped`). False means none."""

    broken: Any = False
    skipped: Any = False


@dataclass(eq=False, slots=True)
class Budget:
    """Statements still allowed, shared by all agents and chunks of a run."""

    steps: int
    limit: int

    def take(self, count: int, loc: Loc | None) -> None:
        self.steps -= count
        if self.steps < 0:
            raise ResourceError(
                f"the simulated kernel executed more than {self.limit:,} statements",
                rule="option simulate_step_limit bounds a run on the CPU target",
                fix="check the loop for an end, use smaller tensors, or raise simulate_step_limit",
                loc=loc,
            )


@dataclass(eq=False, slots=True)
class State:
    """sizes: extents of the machine's axes (grid axes, slowest first, then threads), then of open T.Parallel loops.

    mask: True, or an array over the axes; False means nobody is active."""

    sizes: tuple[int, ...]
    threads: int
    tensors: dict[Buffer, Slot]
    budget: Budget
    vars: dict[Var, Any] = field(default_factory=dict)
    taints: dict[Var, Any] = field(default_factory=dict)
    tiles: dict[Buffer, Slot] = field(default_factory=dict)
    views: dict[Buffer, Buffer] = field(default_factory=dict)
    mask: Any = True
    loop: LoopFrame | None = None
    spread: list[Slot] = field(default_factory=list)  # private buffers spread over the open T.Parallel
    ring: Ring = None  # type: ignore[assignment]
    deferred: list[Any] | None = None  # stores of a copy through registers, kept until it completes
    env: Env = None  # type: ignore[assignment]
    base: int = 0
    origin: tuple[int, ...] = ()  # of the chunk in the grid, like `sizes`
    events: list[Any] | None = None

    def __post_init__(self) -> None:
        self.base = len(self.sizes)

    def opened(self, extents: tuple[int, ...]) -> Axes:
        """More axes, one an extent, for the length of a `with` block."""
        return Axes(self, extents)

    @property
    def rank(self) -> int:
        return len(self.sizes)

    def slot(self, buffer: Buffer, write: bool = False) -> Slot:
        """The buffer's values as this agent sees them; tiles come into being at first use."""
        slot = self.tensors.get(buffer)
        if slot is None and self.views and buffer in self.views:
            return view_slot(buffer, self._held(self.views[buffer], write), self.shape(buffer), self.sizes, write)
        slot = slot if slot is not None else self._held(buffer, write)
        if slot.buffer.dtype is not buffer.dtype:  # a view of another dtype wrote last
            return seen_as(slot, buffer, self.shape(buffer), write)
        return slot

    def _held(self, buffer: Buffer, write: bool) -> Slot:
        slot = self.tensors.get(buffer)
        if slot is None:
            slot = self.ring.slot(buffer, write)
        if slot is None:
            slot = self.tiles.get(buffer)
        if slot is None:
            slot = self.tiles[buffer] = tile_slot(buffer, self.shape(buffer), self.base)
        return slot

    def shape(self, buffer: Buffer) -> tuple[int, ...]:
        return tuple(self.number(s) for s in buffer.shape)

    def number(self, extent: Any) -> int:
        """An extent (an int or an expression of symbols) as an int."""
        if isinstance(extent, int):
            return extent
        value = self.env.program.expression(extent, 0)(self)
        if type(value) is int:
            return value
        if isinstance(value, np.ndarray) and value.size == 1:
            return int(value.reshape(-1)[0])
        raise SimulationError(
            "an extent differs between blocks", rule="tile extents are the same in every block", loc=extent.loc
        )

    def active(self, shape: tuple[int, ...]) -> np.ndarray:
        """The mask as an array of `shape`."""
        return np.broadcast_to(self.mask, shape)


class Axes:
    """Opens axes on a state while its `with` block runs."""

    __slots__ = ("extents", "mask", "sizes", "st")

    def __init__(self, st: State, extents: tuple[int, ...]) -> None:
        self.st, self.extents = st, extents

    def __enter__(self) -> None:
        st = self.st
        self.sizes, self.mask = st.sizes, st.mask
        st.sizes = st.sizes + self.extents
        if isinstance(st.mask, np.ndarray):
            st.mask = st.mask.reshape(st.mask.shape + (1,) * len(self.extents))

    def __exit__(self, *_: object) -> None:
        self.st.sizes, self.st.mask = self.sizes, self.mask


def both(a: Any, b: Any) -> Any:
    """a and b of two masks, with the constants kept plain."""
    if a is True:
        return simple(b)
    if a is False or b is False:
        return False
    return a if b is True else simple(np.logical_and(a, b))


def simple(mask: Any) -> Any:
    """True or False for a mask that is the same everywhere."""
    if isinstance(mask, np.ndarray):
        if mask.all():
            return True
        return mask if mask.any() else False
    return bool(mask)


def negate(mask: Any) -> Any:
    return np.logical_not(mask) if isinstance(mask, np.ndarray) else not mask
