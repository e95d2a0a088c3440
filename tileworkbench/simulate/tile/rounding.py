"""Containers and rounding: where values of a dtype live in NumPy, and how a result is brought to its dtype.

Narrow floats (fp16, bf16, fp8) live in float32 arrays that hold exactly representable values, since NumPy computes
float32 many times faster. Sums, products and quotients of them, rounded once to float32 and once more to the narrow
type, equal the correctly rounded result (float32 has at least 2p + 2 bits for each of them).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ...ir.dtype import DTYPES, DType
from . import half

# From this many elements on, conversion on the bits is faster than NumPy's own.
_LARGE = 1024
_NARROW = {name for name, d in DTYPES.items() if d.is_float and d.bits < 32}


def container(dtype: DType) -> np.dtype:
    """The NumPy dtype of arrays that hold values of `dtype` inside the machine."""
    return np.dtype(np.float32) if dtype.name in _NARROW else dtype.numpy


def is_narrow(dtype: DType) -> bool:
    return dtype.name in _NARROW


def widen(array: np.ndarray, dtype: DType) -> np.ndarray:
    """A native array of `dtype` in its container."""
    if dtype.name not in _NARROW:
        return array
    if dtype.bits == 8:
        table = np.arange(256, dtype=np.uint8).view(dtype.numpy).astype(np.float32)
        return table[array.view(np.uint8)]
    if dtype.name == "float16" and array.size >= _LARGE:
        return half.to_single(array)
    return array.astype(np.float32)


def native(value: Any, source: DType, to: DType) -> Any:
    """A value in the container of `source` as a native narrow float `to`, rounded once; saturating for fp8."""
    if source.is_float and source.bits <= 32 and to.bits == 16:
        if to.name == "float16" and type(value) is np.ndarray and value.size >= _LARGE:
            return half.to_half(value)
        return _plain(np.asarray(value).astype(to.numpy))
    return _plain(np.asarray(convert(value, source, to, saturate=True)).astype(to.numpy))


def _round_half(x: Any) -> Any:
    if type(x) is np.ndarray and x.size >= _LARGE:
        return half.round_half(x)
    return np.asarray(x).astype(np.float16).astype(np.float32)[()]


def _through(native: Any) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        return np.asarray(x).astype(native).astype(np.float32)[()]

    return apply


def round_tf32(x: Any) -> Any:
    """float32 values with 10 bits of mantissa, ties away from zero (as cvt.rna.tf32 does)."""
    u = np.asarray(x, np.float32).view(np.uint32)
    out = ((u + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(x), out, x)[()]


_ROUND: dict[str, Callable[[Any], Any]] = {
    "float16": _round_half,
    **{n: _through(DTYPES[n].numpy) for n in _NARROW if n != "float16"},
}


def rounder(dtype: DType) -> Callable[[Any], Any] | None:
    """The function that rounds float32 results to `dtype`; None when nothing is to be done."""
    return _ROUND.get(dtype.name)


def _odd(x: np.ndarray) -> np.ndarray:
    """float64 to float32 by rounding to odd: a second rounding to fewer bits then equals one direct rounding."""
    f = x.astype(np.float32)
    back = f.astype(np.float64)
    bits = f.view(np.int32)
    inexact = (back != x) & np.isfinite(f)
    # rounded away from zero: step back towards it, then make the last bit 1
    bits = np.where(inexact & (np.abs(back) > np.abs(x)), bits - 1, bits)
    overflowed = np.isinf(f) & np.isfinite(x)
    bits = np.where(overflowed, np.where(x > 0, np.int32(0x7F7FFFFF), np.int32(-0x00800001)), bits)
    return np.where(inexact | overflowed, bits | 1, bits).astype(np.int32).view(np.float32)


def _wrap_int(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Float to integer: towards zero; past the 32- or 64-bit range the nearest end, NaN 0, as cvt.rzi does."""
    wide = dtype if dtype.bits >= 32 else DTYPES["int32"]
    low, high = float(wide.min_value()), float(wide.max_value())
    x64 = np.trunc(x.astype(np.float64))
    safe = np.where(np.isnan(x64), 0.0, x64)
    inside = np.where((safe >= low) & (safe < high), safe, 0.0).astype(wide.numpy)
    out = np.where(safe >= high, wide.numpy.type(wide.max_value()), inside)
    return np.where(safe < low, wide.numpy.type(wide.min_value()), out).astype(dtype.numpy)


def _plain(x: Any) -> Any:
    return x if x.ndim else x[()]


def convert(x: Any, source: DType, to: DType, saturate: bool = False) -> Any:
    """`x` (in the container of `source`) as `to` in its container; nearest-even, float to integer towards zero.
    Integers become narrow floats by way of float32, as the device's and torch's do."""
    if source is to:
        return x
    a = np.asarray(x)
    if to.kind == "bool":
        return _plain(a != 0)
    if not to.is_float:
        return _plain(_wrap_int(a, to) if source.is_float else a.astype(to.numpy))
    if saturate and to.is_fp8:
        a = np.clip(a.astype(np.float64) if a.dtype.kind != "f" else a, to.min_value(), to.max_value())
    if not changes(source, to):
        return x
    if to.name not in _NARROW:
        return _plain(a.astype(to.numpy))
    if a.dtype != np.float32:
        a = _odd(a.astype(np.float64)) if source.is_float else a.astype(np.float32)
    return _plain(_ROUND[to.name](a))


def changes(source: DType, to: DType) -> bool:
    """Whether `convert` makes a new array."""
    if source is to:
        return False
    if source.is_float and to.is_float and container(source) == container(to):
        return is_narrow(to) and not (is_narrow(source) and _holds(to, source))
    return True


def _holds(to: DType, source: DType) -> bool:
    a, b = (ml_dtypes.finfo(d.numpy) for d in (to, source))
    return bool(a.nmant >= b.nmant and a.maxexp >= b.maxexp and a.minexp - a.nmant <= b.minexp - b.nmant)


def wrapper(dtype: DType) -> Callable[[int], int]:
    """Python integers brought into the range of `dtype` by wraparound."""
    span, low = 1 << dtype.bits, 0 if dtype.kind != "int" else -(1 << (dtype.bits - 1))
    high = low + span

    def wrap(value: int) -> int:
        return value if low <= value < high else (value - low) % span + low

    return wrap
