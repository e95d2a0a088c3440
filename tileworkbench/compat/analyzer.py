"""TileLang's Analyzer: how much a kernel computes and moves, and the least time that takes on a card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..jitkernel.compiling import as_kernel
from ..jitkernel.sizes import cases
from ..jitkernel.work import work
from ..target import Target
from ..target.roofline import roofline
from .arch import TileDevice


@dataclass(frozen=True)
class AnalysisResult:
    """`total_flops` (a multiply-add counts 2), `total_global_bytes` with every tensor moved once, `estimated_time` in
    seconds, `expected_tflops` and `expected_bandwidth_GBps` at that time; `bound` is compute or memory."""

    total_flops: float
    total_global_bytes: float
    estimated_time: float
    expected_tflops: float
    expected_bandwidth_GBps: float
    bound: str


class Analyzer:
    """`Analyzer.analysis(kernel, device)`; `device` is a carver arch or anything that names a target."""

    def __init__(self, fn: Any, device: Any) -> None:
        self.fn, self.device = fn, device

    @classmethod
    def analysis(cls, fn: Any, device: Any = "auto") -> AnalysisResult:
        """The roofline of a T.prim_func; run-time extents count as two tiles."""
        return cls(fn, device).calculate()

    def calculate(self) -> AnalysisResult:
        target = self.device.target if isinstance(self.device, TileDevice) else Target.of(self.device)
        kernel = as_kernel(self.fn)
        done = work(kernel, cases(kernel, {})[0])
        bound = roofline(target.device, flops=done.flops, nbytes=done.nbytes)
        seconds = max(bound.us, 1e-6) / 1e6
        return AnalysisResult(
            done.total, done.nbytes, seconds, done.total / seconds / 1e12, done.nbytes / seconds / 1e9, bound.bound
        )
