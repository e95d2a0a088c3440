"""How TMA boxes fill a shared layout: which box writes where, proven against the layout's table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from tileworkbench.layout.distribution import IntArray
from tileworkbench.layout.shared import SharedLayout
from tileworkbench.layout.swizzle import Swizzle

MAX_BOX = 256
SPANS = (128, 64, 32)
SWIZZLES = {128: Swizzle(3, 4, 3), 64: Swizzle(2, 4, 3), 32: Swizzle(1, 4, 3)}


def box_offsets(box: tuple[int, ...], itemsize: int, span: int) -> IntArray:
    """Byte offset that one box writes each element to: dense row-major, then `span`'s XOR on the address (0: none)."""
    linear = np.arange(int(np.prod(box)), dtype=np.int32).reshape(box) * itemsize
    if not span:
        return linear
    inside: IntArray = linear % 16
    swizzled: IntArray = SWIZZLES[span](linear - inside) + inside
    return swizzled


@cache
def swizzle_span(layout: SharedLayout, itemsize: int) -> int | None:
    """The swizzle that `layout` is, by table: 128, 64 or 32 bytes, 0 for plain row-major, None for anything else."""
    if layout == SharedLayout.row_major(layout.shape):
        return 0
    if len(layout.shape) < 2:
        return None
    for span in SPANS:
        if layout.shape[-1] * itemsize % span == 0 and layout == SharedLayout.swizzled(layout.shape, itemsize, span):
            return span
    return None


@dataclass(frozen=True)
class TmaBox:
    """The box at `origin` of the tile, of extents `box`, written from byte `start` of the version."""

    origin: tuple[int, ...]
    box: tuple[int, ...]
    start: int


@dataclass(frozen=True)
class TmaBoxes:
    """Equal boxes that together write the whole layout; `span` is the swizzle in bytes, 0 for none."""

    span: int
    boxes: tuple[TmaBox, ...]

    @property
    def box(self) -> tuple[int, ...]:
        return self.boxes[0].box


@cache
def tma_boxes(layout: SharedLayout, itemsize: int) -> TmaBoxes | str:
    """The fewest equal boxes that fill `layout`, or the reason why TMA cannot write it."""
    span = swizzle_span(layout, itemsize)
    if span is None:
        return f"the shared layout ({layout.describe()}) is not one that TMA writes"
    shape = layout.shape
    inner = span // itemsize if span else shape[-1]
    if inner > MAX_BOX:
        return f"rows of {inner} elements exceed the box limit of {MAX_BOX}"
    if inner * itemsize % 16:
        return f"rows of {inner * itemsize} bytes are not a multiple of 16"
    box = _box(shape, inner, layout.size)
    if len(box) > 5:
        return f"rank {len(box)} exceeds 5"
    pattern = box_offsets(box, itemsize, span)
    boxes = []
    for origin in product(*(range(0, extent, step) for extent, step in zip(shape, box, strict=True))):
        part = layout.table()[tuple(slice(o, o + b) for o, b in zip(origin, box, strict=True))] * itemsize
        start = int(part.flat[0])
        if not np.array_equal(part, start + pattern):
            return f"the box at {origin} is not contiguous in the shared layout"
        boxes.append(TmaBox(origin, box, start))
    return TmaBoxes(span, tuple(boxes))


def _box(shape: tuple[int, ...], inner: int, size: int) -> tuple[int, ...]:
    """Whole extents from the inside out while boxes stay dense, divisors of at most 256 where one is cut."""
    box = [inner]
    dense = inner == shape[-1]
    for position in reversed(range(len(shape) - 1)):
        first = position == len(shape) - 2
        unpadded = size == int(np.prod(shape))
        allowed = shape[position] if first or (dense and unpadded) else 1
        extent = max(d for d in range(1, min(allowed, MAX_BOX) + 1) if shape[position] % d == 0)
        dense = dense and extent == shape[position]
        box.insert(0, extent)
    return tuple(box)
