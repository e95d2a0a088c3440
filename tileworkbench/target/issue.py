"""Clocks that an engine is busy with one instruction, from the device's rates and the latency table."""

from __future__ import annotations

from ..errors import InternalError
from .latency import LATENCIES, LatencyTable
from .target import Target

_WGMMA_K_BYTES = 32  # one warpgroup instruction takes 32 bytes of K whatever the dtype


def latencies(target: Target) -> LatencyTable:
    """The latency table of a target's family."""
    return LATENCIES[target.arch.family]


def wgmma_clocks(target: Target, n: int, *, a_in_shared: bool, dtype: str = "fp16") -> float:
    """Clocks of one warpgroup instruction with 64 rows, `n` columns and 32 bytes of K: the slower of the matrix units
    and the shared-memory port (A from registers spares the port its 2 KiB)."""
    rate = target.device.flops_per_clock(dtype)
    if rate is None:
        raise InternalError(f"{target} has no matrix rate for {dtype}")
    bits = {"tf32": 32, "float32": 32, "tfloat32": 32}.get(dtype, 8 if "8" in dtype else 16)
    math = 2 * 64 * n * (_WGMMA_K_BYTES * 8 // bits) / rate
    read = (n + (64 if a_in_shared else 0)) * _WGMMA_K_BYTES / latencies(target)["shared_bytes"]
    return max(math, read)


def lanes_clocks(target: Target, count: int, rate: str) -> float:
    """Clocks one processor needs for `count` lane operations of a rate such as "mufu_lanes" or "fma_lanes"."""
    return count / latencies(target)[rate]
