"""Index maps that kernels around hand-written matrix instructions use: plain arithmetic, usable for layouts too."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..layout.shared import CHUNK_BYTES, SWIZZLE_PHASES
from .layoutmethods import Layout
from .layouts import make_linear_layout, tile_of
from .tirx import DataType


def get_swizzle_layout(
    row_idx: Any, col_idx: Any, row_size: int, dtype: Any, swizzle_bytes: int | None = None
) -> tuple[Any, Any, Any]:
    """(panel, row, column in the panel) in memory of an element: panels are `swizzle_bytes` wide (32, 64 or 128; else
    the widest that a row of `row_size` elements holds), and their 16-byte chunks are exchanged by row."""
    bits = DataType(dtype).bits
    span = swizzle_bytes or min(128, row_size * bits // 8)
    if span not in SWIZZLE_PHASES:
        raise LayoutError(f"a swizzle of {span} bytes", rule="spans are 32, 64 or 128 bytes")
    rows, phases = SWIZZLE_PHASES[span]
    chunk, width = CHUNK_BYTES * 8 // bits, span * 8 // bits
    return col_idx // width, row_idx, (col_idx % width) ^ (row_idx // rows % phases * chunk)


def make_mma_swizzle_layout(shared_buf: Any, is_smooth: bool = False) -> Any:
    """The swizzled layout of a shared tile whose rows are 64 bytes or a multiple of 128; row-major for other rows, or
    with `is_smooth`."""
    shape, itemsize = tile_of(shared_buf)
    width = shape[-1] * itemsize
    if is_smooth or not (width == 64 or width % 128 == 0):
        return make_linear_layout(shared_buf)
    span = 64 if width == 64 else 128
    dtype = str(shared_buf.dtype)

    def swizzled(*index: Any) -> list[Any]:
        *lead, row, column = index
        return [*lead, *get_swizzle_layout(row, column, shape[-1], dtype, span)]

    return Layout(shape, swizzled)


def get_mma_micro_size(dtype: Any) -> tuple[int, int, int]:
    """(M, N, K) of one step of matrix instructions: K is 32 bytes."""
    bits = DataType(dtype).bits
    return 16, 16, 32 if bits <= 8 else 256 // bits
