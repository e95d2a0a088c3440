"""Timing of any function on the device that is there: TileLang's `profiler.do_bench`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .jitkernel.profile import Profiler, in_mode, samples_of

__all__ = ["Profiler", "do_bench"]


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    _n_warmup: int = 0,
    _n_repeat: int = 0,
    quantiles: Sequence[float] | None = None,
    fast_flush: bool = True,
    backend: str = "event",
    return_mode: str = "mean",
    **_: Any,
) -> Any:
    """Milliseconds a call, or a list for `quantiles`: device time with L2 flushed where there is an NVIDIA card, else
    the host's clock."""
    return in_mode(samples_of(fn, warmup, rep), return_mode, quantiles)
