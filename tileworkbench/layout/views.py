"""Layouts of the same storage under another shape: a view's element lies where the viewed tile's element of the same
row-major place lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tileworkbench.errors import LayoutError
from tileworkbench.layout.distribution import BoolArray, Distribution, row_major_coords, row_major_index
from tileworkbench.layout.fragment import Fragment, Mode
from tileworkbench.layout.function_fragment import fit_modes
from tileworkbench.layout.parallel import LinearLoop
from tileworkbench.layout.shared import SharedLayout, StridedLayout


def reshape_fragment(layout: Distribution, shape: Sequence[int]) -> Distribution:
    """The fragment seen with another shape of equally many elements; in mode form where one exists."""
    if isinstance(layout, ReshapedFragment):
        return reshape_fragment(layout.seen, shape)
    shape = tuple(int(n) for n in shape)
    if shape == layout.shape:
        return layout
    if prod(shape) != prod(layout.shape):
        raise LayoutError(f"a fragment of shape {layout.shape} seen as {shape}", rule="both have as many elements")
    if isinstance(layout, Fragment) and not layout.guard_dims:
        modes = _split(layout, shape)
        if modes is not None:
            return replace(layout, shape=shape, modes=modes)
    if isinstance(layout, LinearLoop):
        return replace(layout, shape=shape)
    made = ReshapedFragment(layout, shape)
    return (fit_modes(made) or made) if not layout.base else made


@dataclass(frozen=True)
class ReshapedFragment(Distribution):
    """`seen`'s elements under another shape: same threads and registers, coordinates by the row-major number."""

    seen: Distribution
    shape: tuple[int, ...]

    @property
    def base(self) -> int:  # type: ignore[override]
        return self.seen.base

    @property
    def closed_form(self) -> bool:  # type: ignore[override]
        return self.seen.closed_form

    @property
    def threads(self) -> int:
        return self.seen.threads

    @property
    def replication(self) -> int:
        return self.seen.replication

    @property
    def reg_extents(self) -> tuple[int, ...]:
        return self.seen.reg_extents

    def register(self, reg_indices: Sequence[Any]) -> Any:
        return self.seen.register(reg_indices)

    def register_digits(self, register: Any) -> tuple[Any, ...]:
        return self.seen.register_digits(register)

    def coordinate(self, thread: Any, reg_indices: Sequence[Any] = ()) -> tuple[Any, ...]:
        at = self.seen.coordinate(thread, reg_indices)
        return row_major_coords(row_major_index(at, self.seen.shape), self.shape)

    def _back(self, coords: Sequence[Any]) -> tuple[Any, ...]:
        return row_major_coords(row_major_index(coords, self.shape), self.seen.shape)

    def owner(self, *coords: Any) -> tuple[Any, Any]:
        return self.seen.owner(*self._back(coords))

    def replica_threads(self, *coords: Any) -> list[Any]:
        return self.seen.replica_threads(*self._back(coords))

    def replica(self, thread: Any) -> Any:
        return self.seen.replica(thread)

    def valid(self) -> BoolArray:
        return self.seen.valid()

    @property
    def guard_dims(self) -> tuple[int, ...]:
        return tuple(range(self.rank)) if self.seen.guarded else ()

    def guards(self, thread: Any, reg_indices: Sequence[Any] = ()) -> tuple[Any, ...]:
        return self.seen.guards(thread, reg_indices)


def _split(layout: Fragment, shape: tuple[int, ...]) -> tuple[Mode, ...] | None:
    """The modes along the new dimensions, None when one of them would cross a dimension's end."""
    weights = [prod(shape[d + 1 :]) for d in range(len(shape))]
    old = [prod(layout.shape[d + 1 :]) for d in range(layout.rank)]
    out: list[Mode] = []
    for mode in layout.modes:
        if mode.dim is None:
            out.append(mode)
            continue
        extent, stride, step = mode.extent, mode.stride, mode.step * old[mode.dim]
        while extent > 1:
            dim = next(d for d in range(len(shape)) if weights[d] <= step and shape[d] > 1)
            end = weights[dim] * shape[dim]
            if step % weights[dim] or end % step:
                return None
            part = min(extent, end // step)
            if part < 2 or extent % part:
                return None
            out.append(Mode(part, mode.axis, stride, dim, step // weights[dim]))
            extent, stride, step = extent // part, stride * part, step * part
    return tuple(out)


class ViewLayout(SharedLayout):
    """A shared tile of `shape` with elements of `itemsize` bytes in the storage of a tile with layout `base`, whose
    elements have `base_itemsize` bytes. LayoutError when an element would not lie in one piece."""

    def __init__(self, base: SharedLayout, base_itemsize: int, shape: Sequence[int], itemsize: int) -> None:
        self.base, self.shape = base, tuple(int(n) for n in shape)
        self.base_itemsize, self.itemsize = base_itemsize, itemsize
        self.size = base.size * base_itemsize // itemsize
        self.alignment = base.alignment
        if itemsize > base_itemsize:
            run = itemsize // base_itemsize
            flat = base.table().reshape(-1, run)
            if (flat[:, :1] + range(run) != flat).any() or (flat[:, 0] % run).any():
                raise LayoutError(f"elements of {itemsize} bytes do not lie in one piece in {base!r}")

    def offset(self, *coords: Any) -> Any:
        place = row_major_index(coords, self.shape)
        if self.itemsize >= self.base_itemsize:
            run = self.itemsize // self.base_itemsize
            found = self.base.offset(*row_major_coords(place * run if run > 1 else place, self.base.shape))
            return found // run if run > 1 else found
        parts = self.base_itemsize // self.itemsize
        return self.base.offset(*row_major_coords(place // parts, self.base.shape)) * parts + place % parts

    def describe(self) -> str:
        return f"the storage of {self.base.describe()}"


def reshape_shared(base: SharedLayout, base_itemsize: int, shape: Sequence[int], itemsize: int) -> SharedLayout:
    """The layout of a view of a shared tile."""
    extents = tuple(int(n) for n in shape)
    if itemsize == base_itemsize and extents == base.shape:
        return base
    if isinstance(base, StridedLayout) and base == SharedLayout.row_major(base.shape):
        return SharedLayout.row_major(extents)
    return ViewLayout(base, base_itemsize, extents, itemsize)
