"""NumPy arguments: copied to the device before a launch and back after it, in order with it and synchronously."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..codegen.source import TensorParam
from .arrays import Array
from .driver import Driver


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
                packed[name] = np.ascontiguousarray(array.owner).reshape(array.shape)
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
                arrays[name].owner[...] = packed[name]
    finally:
        for array in staged.values():
            driver.free(array.pointer)
