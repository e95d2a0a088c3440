"""Layouts of the same storage under another shape: a view's element lies where the viewed tile's element of the same
row-major place lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tileworkbench.errors import LayoutError
from tileworkbench.layout.distribution import Distribution, row_major_coords, row_major_index
from tileworkbench.layout.fragment import Fragment, Mode
from tileworkbench.layout.function_fragment import fragment_from_function
from tileworkbench.layout.shared import SharedLayout, StridedLayout


def reshape_fragment(layout: Distribution, shape: Sequence[int]) -> Distribution:
    """The fragment seen with another shape of equally many elements; in mode form where one exists."""
    shape = tuple(int(n) for n in shape)
    if shape == layout.shape:
        return layout
    if prod(shape) != prod(layout.shape):
        raise LayoutError(f"a fragment of shape {layout.shape} seen as {shape}", rule="both have as many elements")
    if isinstance(layout, Fragment) and not layout.guard_dims:
        modes = _split(layout, shape)
        if modes is not None:
            return replace(layout, shape=shape, modes=modes)
    if layout.base:
        raise LayoutError(f"{layout.describe()} seen as {shape}", rule="a view needs whole modes")
    old = layout.shape

    def at(coords: tuple[Any, ...]) -> tuple[Any, ...]:
        return row_major_coords(row_major_index(coords, shape), old)

    copies = layout.replication
    if copies > 1:
        return fragment_from_function(
            shape, lambda *c: layout.replica_threads(*at(c[:-1]))[int(c[-1].flat[0])],
            lambda *c: layout.owner(*at(c))[1], copies,
        )  # fmt: skip
    return fragment_from_function(shape, lambda *c: layout.owner(*at(c))[0], lambda *c: layout.owner(*at(c))[1])


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
