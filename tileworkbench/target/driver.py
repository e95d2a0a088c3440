"""Asks the NVIDIA driver what cards there are, through ctypes alone; runs in process or as a script that writes JSON.

`cuInit` marks a process for good: after it, a forked child can no longer use CUDA. So `detect` runs this file as a
script, in a process of its own, unless the caller is a CUDA process already. Hence no import beyond the standard
library here. No context is ever made.
"""

from __future__ import annotations

import ctypes
import json
import sys

# CUdevice_attribute numbers, from the driver API's documentation.
ATTRIBUTES = {
    "max_threads": 1,
    "shared_per_block": 8,
    "warp_size": 10,
    "clock_khz": 13,
    "sm_count": 16,
    "memory_clock_khz": 36,
    "bus_bits": 37,
    "l2_bytes": 38,
    "major": 75,
    "minor": 76,
    "shared_per_sm": 81,
    "registers_per_sm": 82,
    "shared_per_block_optin": 97,
}
LIBRARIES = {"win32": ("nvcuda.dll",), "darwin": ()}
NOT_INITIALIZED = 3


def load() -> ctypes.CDLL | None:
    """The driver library, or None. Loading it initialises nothing."""
    for name in LIBRARIES.get(sys.platform, ("libcuda.so.1", "libcuda.so")):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def initialised(cuda: ctypes.CDLL) -> bool:
    """Whether this process has called `cuInit` already (PyTorch or CuPy did, say)."""
    return int(cuda.cuDeviceGetCount(ctypes.byref(ctypes.c_int()))) != NOT_INITIALIZED


def query(cuda: ctypes.CDLL) -> dict[str, object]:
    """{"driver": 13000, "devices": [...], "error": code}; calls `cuInit`. An error code other than 0 is CUresult's."""
    status = int(cuda.cuInit(0))
    if status:
        return {"driver": 0, "devices": [], "error": status}
    version, count = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    status = int(cuda.cuDeviceGetCount(ctypes.byref(count)))
    devices = [_device(cuda, index) for index in range(count.value if not status else 0)]
    return {"driver": version.value, "devices": devices, "error": status}


def _device(cuda: ctypes.CDLL, index: int) -> dict[str, object]:
    handle, name, memory = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
    cuda.cuDeviceGet(ctypes.byref(handle), index)
    cuda.cuDeviceGetName(name, len(name), handle)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)
    found: dict[str, object] = {"index": index, "name": name.value.decode("utf-8", "replace"), "memory": memory.value}
    for key, number in ATTRIBUTES.items():
        value = ctypes.c_int()
        failed = cuda.cuDeviceGetAttribute(ctypes.byref(value), number, handle)
        found[key] = 0 if failed else value.value
    return found


def main() -> None:
    """Write the query's answer to standard output as one line of JSON."""
    cuda = load()
    answer = query(cuda) if cuda is not None else {"driver": 0, "devices": [], "error": -1}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
