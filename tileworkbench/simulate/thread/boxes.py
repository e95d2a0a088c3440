"""Tensor maps as the copy engine reads them: which global byte and which shared byte each element of a box is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InternalError, LaunchError
from ...ir.kernel import TmaMap
from .memory import Space

if TYPE_CHECKING:
    from .launch import Launch

Array = Any
SWIZZLE_MASK = {0: 0, 32: 1, 64: 3, 128: 7}
MAX_BOX, MAX_RANK = 256, 5


def swizzle(address: Array, span: int) -> Array:
    """The engine's permutation of shared addresses: bits 4–6 ^= bits 7–9 (span 128), 4–5 ^= 7–8 (64), 4 ^= 7 (32)."""
    return address ^ ((address >> 7 & SWIZZLE_MASK[span]) << 4)


class Box:
    """A map with this launch's sizes. Elements are numbered innermost first: `near` is each one's byte in the box
    before swizzling, `far` its byte from the box's first element in global memory, `index` its place along each dim."""

    def __init__(self, recipe: TmaMap, launch: Launch) -> None:
        self.recipe, self.item = recipe, recipe.tensor.dtype.bytes
        self.dims = tuple(launch.evaluate(d) for d in recipe.dims)
        self.strides = (self.item, *(launch.evaluate(s) for s in recipe.strides))
        self.box, self.span = recipe.box, recipe.swizzle
        self._check()
        count = int(np.prod(self.box))
        grids = np.unravel_index(np.arange(count), tuple(reversed(self.box)))
        self.index = [np.asarray(g, dtype=np.int64) for g in reversed(grids)]
        self.near = np.arange(count, dtype=np.int64) * self.item
        self.far = sum(i * s for i, s in zip(self.index, self.strides, strict=True))
        self.bytes = count * self.item

    def _check(self) -> None:
        name, inner = self.recipe.name, self.box[0] * self.item
        if not len(self.box) == len(self.dims) == len(self.strides) <= MAX_RANK or self.span not in SWIZZLE_MASK:
            raise InternalError(f"tensor map {name}: box, dims and strides do not fit one another")
        if any(not 1 <= b <= MAX_BOX for b in self.box) or inner % 16 or (self.span and inner > self.span):
            raise InternalError(
                f"tensor map {name}: box {self.box} of {self.item}-byte elements with a {self.span}-byte swizzle",
                rule="extents are 1…256; an inner row is a multiple of 16 bytes and at most the swizzle span",
            )
        if any(s % 16 for s in self.strides[1:]):
            raise LaunchError(
                f"tensor map {name}: strides of {self.strides[1:]} bytes",
                rule="strides of a tensor map are multiples of 16 bytes",
                fix="use another copy for this tensor",
            )

    def place(self, base: int) -> Array:
        """Shared byte of each element for a box at shared byte `base`."""
        return swizzle(base + self.near, self.span)

    def inside(self, coords: list[int]) -> Array:
        """Which elements lie in the tensor."""
        held = np.ones(self.near.size, dtype=bool)
        for c, i, d in zip(coords, self.index, self.dims, strict=True):
            held &= (c + i >= 0) & (c + i < d)
        return held

    def source(self, coords: list[int]) -> Array:
        """Global byte of each element (meaningful where it is inside)."""
        return sum(c * s for c, s in zip(coords, self.strides, strict=True)) + self.far

    def units(self, address: Array) -> Array:
        """Shared bytes of elements at `address`, flat."""
        return (address[:, None] + np.arange(self.item)).ravel()


def fill_bytes(box: Box) -> Array:
    """One element's bytes outside the tensor: zero, or the NaN of its type."""
    dtype = box.recipe.tensor.dtype.numpy
    value = np.zeros(1, dtype) if box.recipe.fill == "zero" else np.full(1, np.nan, dtype)
    return value.view(np.uint8)


def check_inside(space: Space, at: Array, item: int, name: str) -> None:
    """A map must describe memory of its tensor."""
    if at.size and (int(at.min()) < 0 or int(at.max()) + item > space.raw.size):
        raise InternalError(f"tensor map {name} reaches past its tensor's memory")
