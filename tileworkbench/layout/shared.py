"""Layouts of shared-memory tiles: where each element of a tile lies, in elements from the start of one version.

`offset` uses only + - * // % ^ so that it answers Python ints, NumPy arrays and symbolic expressions alike. Two layouts
are equal when their tables are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from math import prod
from typing import Any

import numpy as np

from tileworkbench.errors import LayoutError
from tileworkbench.layout.distribution import (
    IntArray,
    evaluate,
    read_only,
    row_major_index,
    weighted_sum,
)

# Bytes of a swizzle span -> (rows that share a phase, phases): the 16-byte chunk is XORed with row // rows % phases.
SWIZZLE_PHASES = {32: (4, 2), 64: (2, 4), 128: (1, 8)}
CHUNK_BYTES = 16


class SharedLayout:
    """Where the elements of a tile of `shape` lie. `size` counts elements of one version, padding included;
    `alignment` is what the start of every version needs, in bytes."""

    shape: tuple[int, ...]
    size: int
    alignment: int = CHUNK_BYTES

    def offset(self, *coords: Any) -> Any:
        """Elements from the start of the version; polymorphic."""
        raise NotImplementedError

    def describe(self) -> str:
        """The layout in a few words, for messages and plans."""
        raise NotImplementedError

    @cached_property
    def _table(self) -> IntArray:
        grid = np.indices(self.shape, dtype=np.int32)
        return read_only(np.broadcast_to(self.offset(*grid), self.shape).astype(np.int32))

    def table(self) -> IntArray:
        """Offsets as int32 of the tile's shape, read-only."""
        return self._table

    def inverse_table(self) -> IntArray:
        """Coordinates by offset as int32 (size, rank); -1 where nothing lies (padding)."""
        inverse = np.full((self.size, len(self.shape)), -1, dtype=np.int32)
        inverse[self.table()] = np.moveaxis(np.indices(self.shape, dtype=np.int32), 0, -1)
        return inverse

    @property
    def bijective(self) -> bool:
        """No two elements share a place. A user's expression may break this."""
        return np.unique(self.table()).size == prod(self.shape)

    def clash(self) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
        """Two elements that share a place, and the place; None when there are none."""
        if self.bijective:
            return None
        places = self.table().reshape(-1)
        order = np.argsort(places, kind="stable")
        at = int(np.flatnonzero(np.diff(places[order]) == 0)[0])
        first, second = (np.unravel_index(int(order[n]), self.shape) for n in (at, at + 1))
        return tuple(map(int, first)), tuple(map(int, second)), int(places[order[at]])

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.size, self.table().tobytes())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, SharedLayout) and self.shape == other.shape and self._key == other._key

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"SharedLayout({self.shape}, {self.describe()})"

    @staticmethod
    def row_major(shape: Sequence[int]) -> StridedLayout:
        """Last dimension contiguous, no padding."""
        return _padded(_extents(shape), 0)

    @staticmethod
    def padded(shape: Sequence[int], pad: int) -> StridedLayout:
        """Row-major with `pad` elements after each row of the last dimension."""
        return _padded(_extents(shape), pad)

    @staticmethod
    def swizzled(shape: Sequence[int], itemsize: int, span: int) -> SwizzledLayout:
        """Row-major panels of `span` bytes (32, 64 or 128) with XORed 16-byte chunks, as TMA writes them."""
        return _swizzled(_extents(shape), itemsize, span)

    @staticmethod
    def from_function(shape: Sequence[int], function: Callable[..., Any]) -> FunctionLayout:
        """The expression form: `function(*coords)` gives an offset or a tuple of physical indices."""
        return FunctionLayout(_extents(shape), function)


class StridedLayout(SharedLayout):
    """Offset = sum of coordinate * stride."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> None:
        self.shape, self.strides, self.size = shape, strides, size

    def offset(self, *coords: Any) -> Any:
        return weighted_sum(list(zip(coords, self.strides, strict=True)))

    def describe(self) -> str:
        pad = self.strides[-2] - self.shape[-1] if len(self.shape) > 1 else 0
        return f"row-major, rows padded by {pad}" if pad else "row-major"


class SwizzledLayout(SharedLayout):
    """Slices of (rows, columns), each slice a sequence of column panels `span` bytes wide, rows of a panel packed.

    A panel's rows are rounded up to whole swizzle patterns (8 rows of 128 B, 64 B or 32 B), so that every panel, slice
    and version starts where the address bits that the hardware XORs begin at zero."""

    def __init__(self, shape: tuple[int, ...], itemsize: int, span: int) -> None:
        _check_swizzle(shape, itemsize, span)
        self.shape, self.itemsize, self.span = shape, itemsize, span
        self.alignment = 8 * span
        self.panel_columns = span // itemsize
        self.panels = shape[-1] // self.panel_columns
        self.panel_rows = -(-shape[-2] // 8) * 8
        self.panel_size = self.panel_rows * self.panel_columns
        self.size = prod(shape[:-2]) * self.panels * self.panel_size

    def offset(self, *coords: Any) -> Any:
        *lead, row, column = coords
        shared_rows, phases = SWIZZLE_PHASES[self.span]
        panel = column // self.panel_columns if self.panels > 1 else 0
        inside = column % self.panel_columns if self.panels > 1 else column
        phase = (row // shared_rows if shared_rows > 1 else row) % phases
        slice_ = row_major_index(lead, self.shape[:-2])
        start = weighted_sum([(slice_, self.panels * self.panel_size), (panel, self.panel_size)])
        place = row * self.panel_columns + (inside ^ (phase * (CHUNK_BYTES // self.itemsize)))
        return place if isinstance(start, int) and start == 0 else start + place

    def describe(self) -> str:
        panels = f", {self.panels} panels of {self.panel_columns} columns" if self.panels > 1 else ""
        return f"{self.span}-byte swizzle{panels}"


class FunctionLayout(SharedLayout):
    """A user's index function. Several physical indices are linearised row-major over the extents they reach. The
    function is evaluated, over all indices, when something is asked of it."""

    def __init__(self, shape: tuple[int, ...], function: Callable[..., Any]) -> None:
        self.shape, self.function = shape, function

    @cached_property
    def _places(self) -> tuple[IntArray, ...]:
        places = evaluate(self.function, list(np.indices(self.shape, dtype=np.int32)))
        if any(p.size and p.min() < 0 for p in places):
            raise LayoutError(
                "the layout function gives a negative index",
                rule="physical indices start at 0",
                fix="add the offset that makes them so",
            )
        return places

    @cached_property
    def physical_shape(self) -> tuple[int, ...]:
        return tuple(int(p.max()) + 1 if p.size else 0 for p in self._places)

    @cached_property
    def size(self) -> int:  # type: ignore[override]
        return prod(self.physical_shape)

    def offset(self, *coords: Any) -> Any:
        result = self.function(*coords)
        physical = result if isinstance(result, tuple | list) else (result,)
        return row_major_index(physical, self.physical_shape)

    @cached_property
    def _table(self) -> IntArray:
        return read_only(np.ascontiguousarray(row_major_index(self._places, self.physical_shape), dtype=np.int32))

    def describe(self) -> str:
        return "expression"


def _extents(shape: Sequence[int]) -> tuple[int, ...]:
    extents = tuple(int(extent) for extent in shape)
    if not extents or min(extents) < 1:
        raise LayoutError(f"a shared tile needs extents of at least 1, found {extents}")
    return extents


@cache
def _padded(shape: tuple[int, ...], pad: int) -> StridedLayout:
    if pad < 0:
        raise LayoutError(f"padding of {pad} elements", rule="padding is 0 or more", fix="padding=8")
    pitches = (*shape[:-1], shape[-1] + pad)
    strides = tuple(prod(pitches[dim + 1 :]) for dim in range(len(shape)))
    return StridedLayout(shape, strides, prod(pitches))


@cache
def _swizzled(shape: tuple[int, ...], itemsize: int, span: int) -> SwizzledLayout:
    return SwizzledLayout(shape, itemsize, span)


def _check_swizzle(shape: tuple[int, ...], itemsize: int, span: int) -> None:
    if len(shape) < 2:
        raise LayoutError(
            f"a swizzled tile of shape {shape}",
            rule="a swizzle needs rows and columns",
            fix="swizzle tiles of two dimensions or more",
        )
    if span not in SWIZZLE_PHASES or itemsize not in (1, 2, 4, 8, 16):
        raise LayoutError(
            f"span {span} bytes, elements of {itemsize} bytes",
            rule="spans are 32, 64 or 128 bytes",
        )
    if shape[-1] * itemsize % span:
        raise LayoutError(
            f"rows of {shape[-1] * itemsize} bytes",
            rule=f"a {span}-byte swizzle needs rows of a multiple of {span} bytes",
            fix="choose a smaller span, or a padded or row-major layout",
        )
