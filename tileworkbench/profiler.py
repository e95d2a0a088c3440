"""Timing and checking of kernels and of any function: TileLang's `profiler` module."""

from __future__ import annotations

from .jitkernel.bench import do_bench
from .jitkernel.profile import Profiler
from .jitkernel.supply import TensorSupplyType, get_tensor_supply

__all__ = ["Profiler", "TensorSupplyType", "do_bench", "get_tensor_supply"]
