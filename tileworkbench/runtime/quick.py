"""What tells calls of one signature from others, read as cheaply as each library allows; nothing is checked here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from .arrays import Array
from .variants import LOW_BITS


def torch_key(tensors: Iterable[Any], strides: bool) -> tuple[Any, ...]:
    """Of torch tensors; `strides` where a kernel reads them. The launcher writes the same out in its fast path."""
    if strides:
        return tuple([(a.shape, a.dtype, a.get_device(), a.stride()) for a in tensors])
    return tuple([(a.shape, a.dtype, a.get_device(), a.is_contiguous()) for a in tensors])


def cupy_key(tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Of CuPy arrays. AttributeError for other arrays, ValueError for NumPy's of a dtype that has no buffer;
    no key is a torch key, which has no text in it."""
    return ("cupy", *[(a.shape, a.dtype, a.strides, a.data.device_id) for a in tensors])


def cupy_pointers(tensors: Iterable[Any]) -> tuple[int, ...]:
    """Addresses of CuPy arrays."""
    return tuple([a.data.ptr for a in tensors])


def torch_stream() -> Callable[[int], int]:
    """A function from a device to its current stream, of the torch that is loaded."""
    found: Callable[[int], int] = sys.modules["torch"]._C._cuda_getCurrentRawStream
    return found


def cupy_stream() -> int:
    """CuPy's current stream."""
    return int(sys.modules["cupy"].cuda.get_current_stream().ptr)


def stream(given: Iterable[Array], device: int) -> int:
    """The current stream of the first library among the arrays that has one; else the default stream."""
    for array in given:
        if array.library == "torch":
            return torch_stream()(device)
        if array.library == "cupy":
            return cupy_stream()
    return 0


def aligned(pointers: tuple[int, ...]) -> bool:
    """Whether all addresses have the alignment that every prepared variant counts on."""
    joined = 0
    for pointer in pointers:
        joined |= pointer
    return not joined & LOW_BITS
