"""What TileLang's emitter of warpgroup products knows of an operand in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import LanguageError
from ..ir.region import root
from ..language.builder import require
from ..language.regions import to_region
from ..layout.shared import SharedLayout
from ..layout.tma import swizzle_span

MODES = {128: 1, 64: 2, 32: 3}  # bytes of the swizzle → the descriptor's layout type


@dataclass(frozen=True)
class WGMMADescriptorParams:
    """What a descriptor of an operand says: offsets in 16 bytes, elements of one span (`swizzle_atom_elems`), steps of
    K in it. `rows` is the tile's height, `origin` the operand's (row, column) in it."""

    swizzle_mode: int
    leading_byte_offset: int
    stride_byte_offset: int
    swizzle_atom_elems: int
    k_atom_size: int
    elems_in_bytes: int
    is_k_major: bool
    slice_byte_offset: Any
    rows: int
    origin: tuple[Any, Any]

    def units(self, mn: Any, k: Any) -> Any:
        """16-byte units from the tile's start to the element (mn, k) of the operand, before the address swizzle."""
        row, column = (mn, k) if self.is_k_major else (k, mn)
        row, column = self.origin[0] + row, self.origin[1] + column
        width, item = self.swizzle_atom_elems, self.elems_in_bytes
        places = column // width * (self.rows * width) + row * width + column % width
        return places * item // 16


def operand_params(given: Any, layout: Any, k_major: bool, k_step: int) -> WGMMADescriptorParams:
    """Of a tile or a part of one, under its annotated layout unless another is given."""
    region = to_region(given, "a shared operand")
    buffer, item = region.buffer, region.buffer.dtype.bytes
    layout = layout or require("a warpgroup product").attrs.get("layouts", {}).get(root(buffer))
    span = swizzle_span(layout, item) if isinstance(layout, SharedLayout) else 0
    if span not in MODES or (not k_major and item != 2):
        raise LanguageError(
            f"a warpgroup product on `{buffer.name}`",
            rule="its tile is swizzled by 32, 64 or 128 bytes, and with K along rows its elements have 16 bits",
            fix="T.annotate_layout({…: make_wgmma_swizzled_layout(…)}) before it",
        )
    rows, width = int(buffer.shape[-2]), span // item
    row, column = region.starts[-2:]
    leading, per_span = 1 if k_major else rows * span // 16, max(width // k_step, 1)
    return WGMMADescriptorParams(
        MODES[span], leading, span // 2, width, per_span, item, k_major, 0, rows, (row, column)
    )


def compute_gmma_descriptor(
    tl_layout: Any, buffer: Any, transposed: bool, micro_size_k: int = 16, region: Any = None
) -> WGMMADescriptorParams:
    """What the descriptor of an operand under a layout says; `transposed` operands are stored (K, MN)."""
    return operand_params(buffer if region is None else region, tl_layout, not transposed, micro_size_k)
