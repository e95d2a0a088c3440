"""The widest vector with which threads can access memory: contiguous in memory and in registers, and aligned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from tileworkbench.layout.distribution import Distribution
from tileworkbench.layout.shared import SharedLayout

MAX_BYTES = 16


def candidate_widths(registers: int, itemsize: int, max_bytes: int = MAX_BYTES) -> list[int]:
    """Powers of two that divide the registers and fit the greatest access, widest first."""
    widest = max(1, max_bytes // itemsize)
    return [v for v in (1 << p for p in reversed(range(widest.bit_length()))) if v <= widest and registers % v == 0]


def vector_width(
    offsets: NDArray[np.integer], valid: NDArray[np.bool_] | None, itemsize: int, max_bytes: int = MAX_BYTES
) -> int:
    """Widest vector (elements) of element `offsets` (threads, registers), whose base address is aligned to it.

    A vector never holds both elements inside and outside the shape.
    """
    for width in candidate_widths(offsets.shape[1], itemsize, max_bytes):
        runs = offsets.reshape(offsets.shape[0], -1, width)
        inside = None if valid is None else valid.reshape(runs.shape)
        if inside is not None and (inside != inside[..., :1]).any():
            continue
        kept = runs if inside is None else runs[inside[..., 0]]
        if (np.diff(kept, axis=-1) == 1).all() and not (kept[..., 0] % width).any():
            return width
    return 1


@cache
def shared_vector_width(fragment: Distribution, layout: SharedLayout, itemsize: int, max_bytes: int = MAX_BYTES) -> int:
    """Widest vector for `fragment`'s elements in a shared tile of the same shape."""
    valid = fragment.valid()
    inside = np.where(valid[..., None], fragment.table(), 0)
    offsets = layout.table()[tuple(np.moveaxis(inside, -1, 0))]
    return vector_width(offsets, valid if fragment.guarded else None, itemsize, min(max_bytes, layout.alignment))


@cache
def global_vector_width(
    fragment: Distribution, divisors: tuple[int, ...], itemsize: int, alignment: int = 0, max_bytes: int = MAX_BYTES
) -> int:
    """Widest vector for `fragment`'s elements in a tensor whose last dimension is contiguous.

    `divisors[d]` is a known divisor, in elements, of what one step of dimension d adds (0: nothing known beyond 1
    element; the last entry is not used); `alignment` a known divisor, in elements, of the tile's own start (0: start
    aligned to anything). Bounds are the caller's: a row end inside a vector must be ruled out by divisibility facts.
    """
    offsets = _symbolic_offsets(fragment, divisors)
    width = vector_width(offsets, fragment.valid() if fragment.guarded else None, itemsize, max_bytes)
    return gcd(width, alignment) if alignment else width


def _symbolic_offsets(fragment: Distribution, divisors: Sequence[int]) -> NDArray[np.int64]:
    """Offsets that agree with every pitch of the given divisors on contiguity and alignment: each outer step moves by
    its divisor, far enough apart (2^20 elements) that rows never touch."""
    table = fragment.table().astype(np.int64)
    offsets = table[..., -1].copy()
    for dim in range(fragment.rank - 1):
        # An odd multiple keeps the powers of two of the divisor and no more.
        offsets += table[..., dim] * (max(divisors[dim], 1) * ((1 << 20) + 1))
    return offsets
