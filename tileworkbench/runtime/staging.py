"""NumPy arguments: copied to the device before a launch and back after it, in order with it and synchronously."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..codegen.source import TensorParam
from .arrays import Array
from .driver import Driver
from .dtypes import is_packed
from .packing import pack, unpack


@contextlib.contextmanager
def on_device(
    driver: Driver, params: Mapping[str, TensorParam], arrays: Mapping[str, Array], device: int, stream: int
) -> Iterator[dict[str, Array]]:
    """`arrays` with the NumPy ones replaced by device copies for the length of the block. What the kernel writes is
    copied back when the block ends well; nothing is when it does not."""
    staged: dict[str, Array] = {}
    packed: dict[str, np.ndarray] = {}
    try:
        for name, array in arrays.items():
            if array.library == "numpy":
                packed[name] = _stored(array)
                staged[name] = replace(array, pointer=driver.allocate(max(packed[name].nbytes, 1)), device=device)
                driver.copy_in(staged[name].pointer, packed[name].ctypes.data, packed[name].nbytes, stream)
        yield {**arrays, **staged}
        written = [name for name in staged if "w" in params[name].access]
        for name in written:
            if not packed[name].flags.writeable or not np.shares_memory(packed[name], arrays[name].owner):
                packed[name] = np.empty_like(packed[name])
            driver.copy_out(packed[name].ctypes.data, staged[name].pointer, packed[name].nbytes, stream)
        driver.synchronize(stream)
        for name in written:
            if not np.shares_memory(packed[name], arrays[name].owner):
                arrays[name].owner[...] = _held(arrays[name], packed[name])
    finally:
        for array in staged.values():
            driver.free(array.pointer)


def _stored(array: Array) -> np.ndarray:
    """The array's values as the device's memory holds them."""
    if is_packed(array.owner.dtype.name):
        return pack(array.owner)
    made = np.ascontiguousarray(array.owner)
    return made if is_packed(array.dtype) else made.reshape(array.shape)


def _held(array: Array, stored: np.ndarray) -> np.ndarray:
    """What the device's memory holds as the array's values."""
    return unpack(stored, array.dtype) if is_packed(array.owner.dtype.name) else stored
