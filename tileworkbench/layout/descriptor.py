"""wgmma's shared-memory matrix descriptors over swizzled tiles, and the addresses that the hardware reads through them.

Fields (PTX ISA, "Matrix descriptor format"): start address bits 0–13, leading-dimension offset 16–29,
stride-dimension offset 32–45 (each in 16-byte units), base offset 49–51 (0: every pattern starts aligned),
swizzle mode 62–63.

K-major operands are tiles (MN, K), MN-major ones tiles (K, MN); both are stored as row-major panels `span` bytes wide.
The stride offset is the distance between groups of 8 rows of a panel. The leading offset is the distance between
panels, which only MN-major operands use: along K an instruction never leaves its panel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tileworkbench.errors import LayoutError
from tileworkbench.layout.shared import SharedLayout, SwizzledLayout
from tileworkbench.layout.tma import SWIZZLES, swizzle_span

MODES = {128: 1, 64: 2, 32: 3}
K_BYTES = 32
GROUP = 8


@dataclass(frozen=True)
class Descriptor:
    """`start` counts bytes from the start of the tile's version; `leading` and `stride` are bytes too."""

    start: int
    leading: int
    stride: int
    span: int
    mn_major: bool

    @property
    def constant_bits(self) -> int:
        """Everything but the start address."""
        return (self.leading >> 4 & 0x3FFF) << 16 | (self.stride >> 4 & 0x3FFF) << 32 | MODES[self.span] << 62

    def encode(self, address: Any) -> Any:
        """The 64-bit value for a version at shared-memory byte `address`; polymorphic."""
        return self.constant_bits + (((address + self.start) & 0x3FFFF) >> 4)


def operand_offsets(descriptor: Descriptor, mn: int, k: int, itemsize: int, address: Any = 0) -> np.ndarray[Any, Any]:
    """Byte address the hardware reads for each element of one instruction's operand: int64 (mn, k), behind the axes
    that `address` has before two of extent 1. Without a swizzle (span 0) core matrices of 8 × 16 bytes lie `leading`
    and `stride` apart: along K and MN for K-major operands, the other way round for MN-major ones."""
    row, column = np.indices((mn, k), dtype=np.int64)
    if not descriptor.span:
        across, run = (row, column) if descriptor.mn_major else (column, row)
        inside = across * itemsize
        far = inside // 16 * (descriptor.stride if descriptor.mn_major else descriptor.leading)
        place = run // GROUP * (descriptor.leading if descriptor.mn_major else descriptor.stride)
        plain: np.ndarray[Any, Any] = address + descriptor.start + far + place + run % GROUP * 16 + inside % 16
        return plain
    if descriptor.mn_major:
        per_panel = descriptor.span // itemsize
        panel, inside = row // per_panel * descriptor.leading, row % per_panel * itemsize
        place = panel + inside + column // GROUP * descriptor.stride + column % GROUP * descriptor.span
    else:
        place = row // GROUP * descriptor.stride + row % GROUP * descriptor.span + column * itemsize
    logical = address + descriptor.start + place
    inside_chunk = logical % 16
    read: np.ndarray[Any, Any] = SWIZZLES[descriptor.span](logical - inside_chunk) + inside_chunk
    return read


@cache
def wgmma_descriptor(
    layout: SharedLayout, itemsize: int, mn_major: bool, mn: int, k: int, extent_mn: int, lead: int = 0,
    k_bytes: int = K_BYTES,
) -> Descriptor:  # fmt: skip
    """The descriptor of the operand of one instruction, (extent_mn, `k_bytes` of K) from element (mn, k) of the tile.

    `lead` is the row-major index of the slice in a tile of rank above 2. LayoutError when the layout or the place
    cannot be described; the result is proven to read exactly the layout's elements.
    """
    span = swizzle_span(layout, itemsize)
    if not span or span not in MODES:
        raise LayoutError(
            f"a wgmma operand in a shared tile that is {layout.describe()}",
            rule="wgmma reads 32, 64 or 128-byte swizzled tiles",
            fix="leave the layout to the compiler, or annotate a swizzled one",
        )
    if mn_major and itemsize != 2:
        raise LayoutError(f"an MN-major wgmma operand of {itemsize}-byte elements", rule="only 16-bit types may be")
    shape = layout.shape
    tile = SharedLayout.swizzled(shape, itemsize, span)
    row, column = (k, mn) if mn_major else (mn, k)
    extent_k = k_bytes // itemsize
    rows, columns = (extent_k, extent_mn) if mn_major else (extent_mn, extent_k)
    if row + rows > shape[-2] or column + columns > shape[-1]:
        raise LayoutError(f"operand ({row}:{row + rows}, {column}:{column + columns}) of a tile of {shape}")
    per_panel = tile.panel_columns
    if row % GROUP or (column % per_panel if mn_major else column * itemsize % k_bytes):
        raise LayoutError(f"a wgmma operand at ({row}, {column})", rule="operands start at whole groups and panels")
    descriptor = Descriptor(_start(tile, row, column, lead), tile.panel_size * itemsize, GROUP * span, span, mn_major)
    _prove(descriptor, tile, (row, column), (rows, columns), lead)
    return descriptor


def _start(tile: SwizzledLayout, row: int, column: int, lead: int) -> int:
    """Byte of the unswizzled place of (row, column): the hardware applies the XOR itself."""
    panel, inside = divmod(column, tile.panel_columns)
    place = (lead * tile.panels + panel) * tile.panel_size + row * tile.panel_columns + inside
    return place * tile.itemsize


def _prove(
    descriptor: Descriptor, tile: SwizzledLayout, origin: tuple[int, int], extents: tuple[int, int], lead: int
) -> None:
    rows, columns = (slice(o, o + e) for o, e in zip(origin, extents, strict=True))
    held = tile.table().reshape(-1, *tile.shape[-2:])[lead, rows, columns].astype(np.int64) * tile.itemsize
    mn, k = extents[::-1] if descriptor.mn_major else extents
    read = operand_offsets(descriptor, mn, k, tile.itemsize)
    if not np.array_equal(read.T if descriptor.mn_major else read, held):
        raise LayoutError(f"no wgmma descriptor reads {extents} at {origin} of {tile!r}")
