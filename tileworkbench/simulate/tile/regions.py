"""Regions of tile operations, prepared once: their extents, and closures for where they start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.expr import Const, Expr
from ...ir.stmt import Region
from .affine import add, axis_values
from .expression import lift
from .state import State
from .storage import Slot
from .taint import refuse

if TYPE_CHECKING:
    from .program import Program


@dataclass(frozen=True, slots=True)
class Start:
    """Where a region begins in one dimension: a constant, or a closure with its check for unwritten values."""

    constant: int | None
    value: Callable[[State], Any]
    tainted: Callable[[State], Any]
    e: Expr


@dataclass(frozen=True, slots=True)
class RegionPlan:
    """A region whose parts were looked up once."""

    region: Region
    extents: tuple[int, ...] | None  # None: some are known only in a call
    starts: tuple[Start, ...]
    at_origin: bool

    def sizes(self, st: State) -> tuple[int, ...]:
        return self.extents if self.extents is not None else tuple(st.number(e) for e in self.region.extents)

    def empty(self, st: State) -> bool:
        """Whether this call's extents leave no elements."""
        return self.extents is None and any(n < 1 for n in self.sizes(st))

    def covers(self, st: State, slot: Slot, extents: tuple[int, ...]) -> bool:
        """Whether the region is the whole of a buffer whose array may be taken or replaced."""
        return self.at_origin and extents == slot.shape and not slot.view and slot.lead == st.base

    def indices(self, st: State, extents: tuple[int, ...]) -> list[Any]:
        """Index values over the machine's axes and then the region's own, which are not open yet."""
        count, rank, out = len(extents), st.base + len(extents), []
        for d, (start, size) in enumerate(zip(self.starts, extents, strict=True)):
            origin: Any = start.constant
            if origin is None:
                refuse(st, start.tainted, start.e, "an address", self.region.loc)
                origin = lift(start.value(st), count)
            if size > 1:
                along = axis_values(st.base + d, size, rank)
                origin = origin + along.dense() if isinstance(origin, np.ndarray) else add(origin, along)
            out.append(origin)
        return out


def plan_region(region: Region, program: Program) -> RegionPlan:
    """The plan of `region`."""
    extents = tuple(e for e in region.extents if isinstance(e, int))
    starts = tuple(
        Start(int(s.value) if isinstance(s, Const) else None, program.expression(s, 0), program.taint(s, 0), s)
        for s in region.starts
    )
    at_origin = all(s.constant == 0 for s in starts)
    return RegionPlan(region, extents if len(extents) == len(region.extents) else None, starts, at_origin)
