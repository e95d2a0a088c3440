"""Elements narrower than a byte in the arrays of a call: two share a byte, the first in its low half. NumPy's arrays
of such types (ml_dtypes) hold one a byte; they are packed on their way to a device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .arrays import Array, numpy_dtype
from .dtypes import CONTAINERS, PER_BYTE, is_packed, stored_shape


def logical(array: Array, dtype: str) -> Array:
    """An array of pairs as the array of elements that a parameter of `dtype` declares; any other array as it is."""
    if not is_packed(dtype) or array.dtype not in CONTAINERS[dtype] or not array.shape:
        return array
    shape = (*array.shape[:-1], array.shape[-1] * PER_BYTE)
    last = array.strides[-1]
    strides = (*(s * PER_BYTE for s in array.strides[:-1]), last if last == 1 else last * PER_BYTE)
    return replace(array, shape=shape, strides=strides, dtype=dtype)


def pack(values: np.ndarray) -> np.ndarray:
    """Bytes of pairs from an array with one element a byte."""
    stored_shape(values.shape, values.dtype.name)
    codes = np.ascontiguousarray(values).view(np.uint8) & 15
    return np.ascontiguousarray(codes[..., ::2] | codes[..., 1::2] << 4)


def unpack(pairs: np.ndarray, dtype: str) -> np.ndarray:
    """One element a byte from bytes of pairs."""
    raw = np.ascontiguousarray(pairs).view(np.uint8)
    codes = np.stack([raw & 15, raw >> 4], axis=-1).reshape(*raw.shape[:-1], raw.shape[-1] * PER_BYTE)
    if dtype == "int4":
        codes = (codes ^ 8) - np.uint8(8)
        return codes.view(np.int8).astype(numpy_dtype(dtype))
    return codes.view(numpy_dtype(dtype))


def with_strides(values: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """The same values in memory with these strides, in elements."""
    span = 1 + sum((n - 1) * s for n, s in zip(values.shape, strides, strict=True)) if values.size else 0
    flat = np.zeros(span, values.dtype)
    made = np.lib.stride_tricks.as_strided(flat, values.shape, tuple(s * values.itemsize for s in strides))
    made[...] = values
    return made
