"""Host cost of a repeated call, in microseconds, three tensors, output given: ours beside a bare launch with ready
arguments and CuPy's RawKernel, in one process. Needs an NVIDIA GPU, torch and CuPy.

    PYTHONPATH=. python tests/benchmarks/launch_cost.py [--json FILE]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
import torch

from tileworkbench.codegen.source import KernelArg, Source, TensorMap, TensorParam
from tileworkbench.runtime import build, driver
from tileworkbench.runtime.cache import DiskCache
from tileworkbench.runtime.launch import Launcher

TEXT = """\
extern "C" __global__ void __launch_bounds__(128) nothing(const float* A, const float* B, float* C, int M, int N) {
  if (M < 0) C[0] = A[0] + B[0];
}
"""
MAPPED_TEXT = """\
struct alignas(64) Map { unsigned char bytes[128]; };
extern "C" __global__ void __launch_bounds__(128)
mapped(const __grid_constant__ Map A, const __grid_constant__ Map B, const __grid_constant__ Map C, int M) {}
"""
CALLS, ROUNDS = 300, 15  # fewer than fill the launch queue, so that the host never waits for the device


def source(arch: str, mapped: bool) -> Source:
    shape = ("M", "N")
    params = tuple(TensorParam(n, "float32", shape, access="w" if n == "C" else "r") for n in "ABC")
    symbols = (KernelArg("symbol", "M", "int32"), KernelArg("symbol", "N", "int32"))
    kind = "map" if mapped else "pointer"
    args = (*(KernelArg(kind, n) for n in "ABC"), *symbols[: 1 if mapped else 2])
    maps = tuple(TensorMap(n, n, "float32", ("N", "M"), (("mul", "N", 4),), (32, 32)) for n in "ABC") if mapped else ()
    return Source(
        text=MAPPED_TEXT if mapped else TEXT, entry="mapped" if mapped else "nothing", dialect="cuda", arch=arch,
        params=params, args=args, grid=(1,), threads=128, maps=maps,
    )  # fmt: skip


def cost(call: Callable[[], Any]) -> float:
    """Median over rounds of the mean host time of a call, in microseconds."""
    for _ in range(50):
        call()
    rounds = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append(1e6 * (time.perf_counter() - start) / CALLS)
    torch.cuda.synchronize()
    return statistics.median(rounds)


def bare_bindings(function: int, pointers: list[int]) -> Callable[[], Any] | None:
    """cuLaunchKernel through cuda-bindings with its arguments packed beforehand."""
    try:
        from cuda.bindings import driver as cuda
    except ImportError:
        return None
    slots = (ctypes.c_uint64 * 5)(*pointers, 128, 128)
    table = (ctypes.c_void_p * 5)(*(ctypes.addressof(slots) + 8 * i for i in range(5)))
    handle, address, stream = cuda.CUfunction(function), ctypes.addressof(table), cuda.CUstream(0)
    kept = (slots, table)
    return lambda: (cuda.cuLaunchKernel(handle, 1, 1, 1, 128, 1, 1, 0, stream, address, 0), kept)[0]


def bare_ctypes(function: int, pointers: list[int]) -> Callable[[], Any]:
    """Our driver's prepared launch, called directly."""
    slots = (ctypes.c_uint64 * 5)(*pointers, 128, 128)
    table = (ctypes.c_void_p * 5)(*(ctypes.addressof(slots) + 8 * i for i in range(5)))
    launch = driver.cuda().prepare(function, (1, 1, 1), (128, 1, 1), 0, (1, 1, 1), table)
    return lambda: (launch.call(), slots)[0]


def measure() -> dict[str, float]:
    major, minor = driver.cuda().capability(0)
    arch = "sm_90a" if (major, minor) == (9, 0) else f"sm_{major}{minor}"
    plain, cache = source(arch, False), DiskCache(None)
    binary = build.build(plain, cache)
    kernel = Launcher([(plain, binary)])
    a, b, c = (torch.zeros(128, 128, device="cuda") for _ in range(3))
    d = torch.zeros(128, 128, device="cuda")
    _, function = driver.cuda().load(0, binary.code, plain.entry, 0, 1)
    pointers = [x.data_ptr() for x in (a, b, c)]
    x, y, z = (cupy.asarray(t) for t in (a, b, c))
    raw = cupy.RawModule(code=TEXT).get_function("nothing")
    flip = [0]

    def alternating() -> None:
        flip[0] ^= 1
        kernel(a, b, d if flip[0] else c)

    found = {
        "bare cuLaunchKernelEx, ctypes": cost(bare_ctypes(function, pointers)),
        "ours, torch": cost(lambda: kernel(a, b, c)),
        "ours, torch, an address changes": cost(alternating),
        "ours, CuPy": cost(lambda: kernel(x, y, z)),
        "CuPy RawKernel, CuPy arrays": cost(lambda: raw((1,), (128,), (x, y, z, np.int32(128), np.int32(128)))),
        "torch.add, output given": cost(lambda: torch.add(a, b, out=c)),
    }
    if (bindings := bare_bindings(function, pointers)) is not None:
        found["bare cuLaunchKernel, cuda-bindings"] = cost(bindings)
    if major >= 9:
        mapped = source(arch, True)
        with_maps = Launcher([(mapped, build.build(mapped, cache))])
        found["ours, torch, three TMA descriptors"] = cost(lambda: with_maps(a, b, c))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="also write the numbers there")
    arguments = parser.parse_args()
    found = measure()
    floor = found.get("bare cuLaunchKernel, cuda-bindings", found["bare cuLaunchKernelEx, ctypes"])
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, CuPy {cupy.__version__}")
    for name, micros in sorted(found.items(), key=lambda item: item[1]):
        print(f"{name:40} {micros:7.2f} us   {micros - floor:+6.2f} above the bare launch")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
