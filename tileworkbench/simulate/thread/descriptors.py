"""Matrix descriptors: which shared byte each element of a wgmma operand is (PTX, matrix descriptor format)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.dtype import DType
from ...ir.instr import Desc
from .boxes import SWIZZLE_MASK, swizzle
from .faults import fault
from .memory import check_defined, uniform
from .program import Program
from .warp import Warp

Array = Any


def descriptor_offsets(d: Desc, mn: int, k: int, item: int) -> Array:
    """(mn, k) bytes from the start address before the address swizzle.

    K-major: rows of one swizzle span, groups of 8 rows `stride` apart; without a swizzle core matrices of 8 × 16 bytes,
    `leading` apart along k and `stride` apart along mn. MN-major: runs of one span along mn, `leading` apart; 8 of them
    one below the other along k, then `stride` (without a swizzle `stride` along mn and `leading` along k)."""
    row, column = np.indices((mn, k), dtype=np.int64)
    span = d.swizzle or 16
    if d.major == "k":
        inside = column * item
        place = row // 8 * d.stride + row % 8 * span
        return place + inside if d.swizzle else place + inside // 16 * d.leading + inside % 16
    along, run = (d.leading, d.stride) if d.swizzle else (d.stride, d.leading)
    inside = row * item
    return inside // span * along + inside % span + column % 8 * span + column // 8 * run


@dataclass(slots=True, eq=False)
class Operand:
    """A shared operand of one instruction: elements' bytes relative to the descriptor's start."""

    desc: Desc
    rows: int
    columns: int
    item: int
    start: Callable[[Warp], int]
    offsets: Array

    def addresses(self, w: Warp) -> Array:
        """Shared byte of each element, checked against the buffer."""
        base = self.start(w)
        at = swizzle(base + self.offsets, self.desc.swizzle)
        layout, buffer = w.block.program.layout, self.desc.addr.buffer
        low, size = layout.offsets[buffer], layout.sizes[buffer]
        if int(at.min()) < low or int(at.max()) + self.item > low + size:
            raise fault(
                w,
                "bounds",
                f"the descriptor reads from byte {int(at.min())} to {int(at.max())}, outside of {buffer.name}",
                rule="a descriptor stays inside its buffer",
            )
        return at


def operand(p: Program, d: Desc, mn: int, k: int) -> Operand:
    """A compiled descriptor operand of mn × k elements."""
    item, buffer = d.addr.buffer.dtype.bytes, d.addr.buffer
    if d.swizzle not in SWIZZLE_MASK or d.major not in ("k", "mn") or (d.major == "mn" and item != 2):
        raise InternalError(f"no descriptor with swizzle {d.swizzle} and major {d.major} of {item}-byte elements")
    offset, first = p.scope.value(d.addr.offset), p.layout.offsets[buffer]

    def start(w: Warp) -> int:
        check_defined(w, offset.undefined, "the descriptor's address")
        at = first + uniform(w, offset.read(w), "the descriptor's address") * item
        if at % 16:
            raise fault(w, "alignment", f"a descriptor at shared byte {at}", rule="descriptors count in 16 bytes")
        return at

    return Operand(d, mn, k, item, start, descriptor_offsets(d, mn, k, item))


def elements(raw: Array, at: Array, dtype: DType) -> Array:
    """The elements of shared memory at these bytes."""
    return np.ascontiguousarray(raw[at[..., None] + np.arange(dtype.bytes)]).view(dtype.numpy)[..., 0]
