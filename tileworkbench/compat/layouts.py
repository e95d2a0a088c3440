"""TileLang's layout constructors on this package's layouts: what they give is a SharedLayout or a fragment that
`T.annotate_layout` takes, with TileLang's methods besides."""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import Any

from ..errors import LayoutError
from ..ir.expr import Buffer
from ..layout import StridedLayout, SwizzledLayout
from .fragments import (
    Fragment,
    make_fully_replicated_layout_fragment,
    make_gemm_fragment_8x8,
    make_gemm_fragment_8x8_transposed,
)
from .layoutmethods import Layout, LayoutMethods

__all__ = [
    "Fragment",
    "Layout",
    "SwizzleMode",
    "make_full_bank_swizzled_layout",
    "make_fully_replicated_layout_fragment",
    "make_gemm_fragment_8x8",
    "make_gemm_fragment_8x8_transposed",
    "make_half_bank_swizzled_layout",
    "make_linear_layout",
    "make_quarter_bank_swizzled_layout",
    "make_swizzled_layout",
    "make_volta_swizzled_layout",
    "make_wgmma_swizzled_layout",
]
SPANS = (128, 64, 32)


class SwizzleMode(Enum):
    """Bytes within which 16-byte chunks are exchanged."""

    NONE = 0
    SWIZZLE_128B = 1
    SWIZZLE_64B = 2
    SWIZZLE_32B = 3

    def is_none(self) -> bool:
        """Whether nothing is exchanged."""
        return self is SwizzleMode.NONE

    def is_swizzle_32b(self) -> bool:
        """Whether spans are of 32 bytes."""
        return self is SwizzleMode.SWIZZLE_32B

    def is_swizzle_64b(self) -> bool:
        """Whether spans are of 64 bytes."""
        return self is SwizzleMode.SWIZZLE_64B

    def is_swizzle_128b(self) -> bool:
        """Whether spans are of 128 bytes."""
        return self is SwizzleMode.SWIZZLE_128B

    def swizzle_byte_size(self) -> int:
        """Bytes of the span; 1 without a swizzle."""
        return {0: 1, 1: 128, 2: 64, 3: 32}[self.value]

    def swizzle_atom_size(self) -> int:
        """16-byte chunks in the span; 1 without a swizzle."""
        return max(1, self.swizzle_byte_size() // 16)


class Swizzled(LayoutMethods, SwizzledLayout):
    """Rows in panels whose 16-byte chunks are exchanged, as the copy engine and wgmma read them."""


class Linear(LayoutMethods, StridedLayout):
    """Row-major."""


def make_swizzled_layout(buffer: Any, k_major: bool = True, allow_pad: bool = True) -> Any:
    """The widest swizzle that the rows of a shared tile hold; rows that hold none are padded by 16 bytes, or packed
    without `allow_pad`. `k_major` is accepted: which dimension a product sums over does not change the exchange."""
    shape, itemsize = tile_of(buffer)
    span = next((s for s in SPANS if len(shape) > 1 and shape[-1] * itemsize % s == 0), 0)
    if span:
        return Swizzled(shape, itemsize, span)
    return _rows(shape, 16 // itemsize if allow_pad and len(shape) > 1 else 0)


def make_wgmma_swizzled_layout(buffer: Any, continuity: int | None = None, k_major: bool = True) -> Any:
    """The swizzle of a wgmma operand; `continuity` elements of a row belong together (default: all)."""
    shape, itemsize = tile_of(buffer)
    width = shape[-1] if continuity is None else continuity
    span = next((s for s in SPANS if width * itemsize % s == 0), 0)
    return Swizzled(shape, itemsize, span) if span else _rows(shape, 0)


def make_volta_swizzled_layout(buffer: Any, is_a: bool = True, k_inner: bool = True) -> Any:
    """The swizzle of a sm_70 operand; here that of `make_swizzled_layout`, since no sm_70 code is made."""
    return make_swizzled_layout(buffer)


def make_full_bank_swizzled_layout(*args: Any) -> Any:
    """A 128-byte swizzle of a tile: of a buffer, or (rows, columns, bits of an element)."""
    return _swizzled(args, 128)


def make_half_bank_swizzled_layout(*args: Any) -> Any:
    """A 64-byte swizzle."""
    return _swizzled(args, 64)


def make_quarter_bank_swizzled_layout(*args: Any) -> Any:
    """A 32-byte swizzle."""
    return _swizzled(args, 32)


def make_linear_layout(*args: Any) -> Any:
    """Row-major: of a buffer, or of extents."""
    shape = tuple(int(e) for e in args) if isinstance(args[0], int) else tile_of(args[0])[0]
    return _rows(shape, 0)


def _swizzled(args: tuple[Any, ...], span: int) -> Swizzled:
    if len(args) == 3:
        rows, columns, bits = args
        return Swizzled((int(rows), int(columns)), int(bits) // 8, span)
    return Swizzled(*tile_of(args[0]), span)


def _rows(shape: tuple[int, ...], pad: int) -> Linear:
    pitches = (*shape[:-1], shape[-1] + pad)
    return Linear(shape, tuple(prod(pitches[dim + 1 :]) for dim in range(len(shape))), prod(pitches))


def tile_of(buffer: Any) -> tuple[tuple[int, ...], int]:
    """(shape, bytes of an element) of a buffer, or of the buffer that a load or a region is of."""
    found = buffer if isinstance(buffer, Buffer) else getattr(buffer, "buffer", None)
    if not isinstance(found, Buffer):
        raise LayoutError(
            f"a layout of {type(buffer).__name__}", rule="layouts are made for buffers", fix="pass the tile itself"
        )
    if found.static_size() is None:
        raise LayoutError(f"a layout of {found.name}, whose extents are not known", rule="tiles have fixed extents")
    return tuple(int(getattr(e, "value", e)) for e in found.shape), found.dtype.bytes
