"""float16 ↔ float32 on the bits. NumPy converts one element at a time; these run several times faster on whole tiles.

Rounding is to nearest even. Work goes in pieces that stay in a core's cache; a piece that holds numbers outside the
normal range of float16 takes a few more passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_PIECE = 1 << 15
_MAGNITUDE = np.uint32(0x7FFFFFFF)
_SMALLEST_NORMAL = np.uint32(0x38800000)  # 2⁻¹⁴
_OVERFLOW = np.uint32(0x477FF000)  # 65520, which rounds to infinity


def _pieces(x: np.ndarray, source: Any, target: Any, fn: Callable[[np.ndarray, np.ndarray], None]) -> np.ndarray:
    # Taken in the order of memory, so that a transposed tile needs no copy and keeps its order.
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    ordered = np.ascontiguousarray(x.transpose(order))
    flat = ordered.reshape(-1).view(source)
    out = np.empty(flat.size, target)
    for start in range(0, flat.size, _PIECE):
        fn(flat[start : start + _PIECE], out[start : start + _PIECE])
    back = [order.index(axis) for axis in range(x.ndim)]
    return out.reshape(ordered.shape).transpose(back)


def to_half(x: np.ndarray) -> np.ndarray:
    """float32 as float16."""
    return _pieces(x, np.uint32, np.uint16, _to_half).view(np.float16)


def to_single(x: np.ndarray) -> np.ndarray:
    """float16 as float32, exactly."""
    return _pieces(x, np.uint16, np.uint32, _to_single).view(np.float32)


def round_half(x: np.ndarray) -> np.ndarray:
    """float32 rounded to float16, in float32."""
    return _pieces(x, np.uint32, np.uint32, _round).view(np.float32)


def _extremes(magnitude: np.ndarray) -> tuple[bool, bool]:
    """Whether there are numbers below the normal range, and above it (infinities and NaN included)."""
    return bool(magnitude.min() < _SMALLEST_NORMAL), bool(magnitude.max() >= _OVERFLOW)


def _to_half(u: np.ndarray, out: np.ndarray) -> None:
    magnitude = u & _MAGNITUDE
    r = magnitude >> np.uint32(13)
    r &= np.uint32(1)
    r += magnitude
    r -= np.uint32(0x38000000 - 0xFFF)
    r >>= np.uint32(13)
    small, large = _extremes(magnitude)
    if small:
        # multiples of 2⁻²⁴; 1024 of them are the smallest normal number, whose bits are 1024 too
        units = np.rint(magnitude.view(np.float32) * np.float32(2.0**24))
        np.copyto(r, units, casting="unsafe", where=magnitude < _SMALLEST_NORMAL)
    sign = u >> np.uint32(16)
    sign &= np.uint32(0x8000)
    r |= sign
    out[...] = r
    if large:
        at = np.flatnonzero(magnitude >= _OVERFLOW)
        out[at] = u[at].view(np.float32).astype(np.float16).view(np.uint16)


def _to_single(u: np.ndarray, out: np.ndarray) -> None:
    wide = u.astype(np.uint32)
    np.left_shift(wide, np.uint32(13), out=out)
    out &= np.uint32(0x0FFFE000)
    value = out.view(np.float32)
    value *= np.float32(2.0**112)
    if value.max(initial=0) >= 65536:
        at = np.flatnonzero(value >= 65536)
        value[at] = u[at].view(np.float16).astype(np.float32)
    wide &= np.uint32(0x8000)
    wide <<= np.uint32(16)
    out |= wide


def _round(u: np.ndarray, out: np.ndarray) -> None:
    magnitude = u & _MAGNITUDE
    np.right_shift(u, np.uint32(13), out=out)
    out &= np.uint32(1)
    out += np.uint32(0xFFF)
    out += u
    out &= np.uint32(0xFFFFE000)
    small, large = _extremes(magnitude)
    if small:
        # numbers in [0.5, 1) are multiples of 2⁻²⁴, so adding 0.75 rounds to these
        units = magnitude.view(np.float32) + np.float32(0.75)
        units -= np.float32(0.75)
        bits = units.view(np.uint32)
        bits |= u & np.uint32(0x80000000)
        np.copyto(out, bits, where=magnitude < _SMALLEST_NORMAL)
    if large:
        at = np.flatnonzero(magnitude >= _OVERFLOW)
        out.view(np.float32)[at] = u[at].view(np.float32).astype(np.float16).astype(np.float32)
