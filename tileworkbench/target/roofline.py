"""The least time a kernel can take: the slower of its arithmetic at peak and its traffic at full bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .device import Device


@dataclass(frozen=True)
class Roofline:
    """Lower bounds in microseconds; `bound` is "compute", "memory" or "nothing". `note` tells of dtypes that the card
    has no matrix unit for, counted at the ordinary units' rate."""

    compute_us: float
    memory_us: float
    bound: str
    intensity: float  # FLOP a byte
    ridge: float  # FLOP a byte at which the two sides meet, for the mix of dtypes given
    note: str = ""

    @property
    def us(self) -> float:
        """The prediction: no kernel doing this work can be faster."""
        return max(self.compute_us, self.memory_us)

    def __str__(self) -> str:
        return (
            f"{self.us:.3g} us, {self.bound} bound (compute {self.compute_us:.3g} us, memory {self.memory_us:.3g} us)"
        )


def roofline(device: Device, *, flops: Mapping[str, float], nbytes: float) -> Roofline:
    """The bound for `flops` by dtype ("fp16", "float8_e4m3fn", "fp32_simt" …; a multiply-add counts 2) and `nbytes`
    moved to and from device memory."""
    simt = device.peak("fp32_simt") or 0.1
    without = [dtype for dtype, count in flops.items() if count and device.peak(dtype) is None]
    compute_us = sum(count / (device.peak(dtype) or simt) / 1e6 for dtype, count in flops.items())
    memory_us = nbytes / device.bandwidth_gbs / 1e3
    total = sum(flops.values())
    intensity = total / nbytes if nbytes else float("inf") if total else 0.0
    rate = total / compute_us if compute_us else simt * 1e6  # FLOP a microsecond
    bound = "nothing" if not total and not nbytes else "compute" if compute_us >= memory_us else "memory"
    note = f"{device.name} has no matrix unit for {', '.join(without)}" if without else ""
    return Roofline(compute_us, memory_us, bound, intensity, rate / (device.bandwidth_gbs * 1e3), note)
