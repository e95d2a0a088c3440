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
        """Extents of one box in elements, as the tensor map takes them."""
        return self.boxes[0].box


@cache
def tma_boxes(
    layout: SharedLayout, itemsize: int, corner: tuple[int, ...] | None = None, extents: tuple[int, ...] | None = None
) -> TmaBoxes | str:
    """The fewest equal boxes that fill `layout`, or its part of `extents` from `corner` on, or the reason why TMA
    cannot write it. Origins count from the corner, starts from the layout's first byte."""
    span = swizzle_span(layout, itemsize)
    if span is None:
        return f"the shared layout ({layout.describe()}) is not one that TMA writes"
    shape, corner = extents or layout.shape, corner or (0,) * len(layout.shape)
    inner = span // itemsize if span else shape[-1]
    if shape[-1] % inner or corner[-1] % inner:
        return f"columns {corner[-1]} to {corner[-1] + shape[-1]} are no whole panels of {inner}"
    if inner > MAX_BOX:
        return f"rows of {inner} elements exceed the box limit of {MAX_BOX}"
    if inner * itemsize % 16:
        return f"rows of {inner * itemsize} bytes are not a multiple of 16"
    box = _box(shape, layout, inner, bool(span))
    if len(box) > 5:
        return f"rank {len(box)} exceeds 5"
    pattern = box_offsets(box, itemsize, span)
    boxes = []
    for origin in product(*(range(0, extent, step) for extent, step in zip(shape, box, strict=True))):
        place = zip(origin, corner, box, strict=True)
        part = layout.table()[tuple(slice(o + c, o + c + b) for o, c, b in place)] * itemsize
        start = int(part.flat[0])
        if not np.array_equal(part, start + pattern):
            return f"the box at {origin} is not contiguous in the shared layout"
        if span and start % (8 * span):  # the engine exchanges chunks by address
            return f"the box at {origin} does not start at a multiple of {8 * span} bytes"
        boxes.append(TmaBox(origin, box, start))
    return TmaBoxes(span, tuple(boxes))


def _box(shape: tuple[int, ...], layout: SharedLayout, inner: int, panels: bool) -> tuple[int, ...]:
    """Whole extents from the inside out while boxes stay dense, divisors of at most 256 where one is cut. The rows of
    a panel always follow one another."""
    box = [inner]
    dense = inner == layout.shape[-1]
    unpadded = layout.size == int(np.prod(layout.shape))
    for position in reversed(range(len(shape) - 1)):
        first = position == len(shape) - 2
        allowed = shape[position] if (first and (panels or dense)) or (dense and unpadded) else 1
        extent = max(d for d in range(1, min(allowed, MAX_BOX) + 1) if shape[position] % d == 0)
        dense = dense and extent == layout.shape[position]
        box.insert(0, extent)
    return tuple(box)
