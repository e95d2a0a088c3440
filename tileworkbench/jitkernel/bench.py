"""do_bench: milliseconds of a call, on the card where there is one, else by the host's clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import MissingDependency, OptionError
from ..runtime import benchmark
from ..target.detect import detect

MODES: dict[str, Callable[[Sequence[float]], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "min": np.min,
    "max": np.max,
}
BACKENDS = ("event", "cudagraph", "cupti")


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
    device: Any = None,
    cache_size: int = 256,
    early_stop_baseline: float | None = None,
) -> Any:
    """Milliseconds a call of `fn`: the `return_mode` (mean, median, min, max) of about `rep` milliseconds of runs after
    `warmup`, or a list for `quantiles`. On a card each run is timed by events behind an overwritten L2 cache; backend
    "cudagraph" captures one call and times its replays. `_n_warmup` and `_n_repeat` fix the numbers of runs.
    Accepted and without effect: `fast_flush`, `cache_size` (the cache's own size decides), `early_stop_baseline`."""
    check(return_mode, backend)
    samples = on_card(fn, warmup, rep, _n_warmup, _n_repeat, backend, device)
    return reduced(samples, quantiles, return_mode)


def check(return_mode: str, backend: str) -> None:
    """OptionError for a mode or a backend that does not exist."""
    if return_mode not in MODES:
        raise OptionError(f"return_mode={return_mode!r}", rule=f"one of {', '.join(MODES)}", fix='"mean"')
    if backend not in BACKENDS:
        raise OptionError(f"backend={backend!r}", rule=f"one of {', '.join(BACKENDS)}", fix='"event"')


def reduced(samples: Sequence[float], quantiles: Sequence[float] | None, return_mode: str) -> Any:
    """One number, or a list for `quantiles` (a single one gives a number, as in TileLang)."""
    if quantiles:
        found = [float(x) for x in np.quantile(list(samples), list(quantiles))]
        return found[0] if len(found) == 1 else found
    return float(MODES[return_mode](samples))


def has_card() -> bool:
    """Whether an NVIDIA card can be timed here."""
    return any(found.driver for found in detect())


def on_card(
    fn: Callable[[], Any], warmup: float, rep: float, n_warmup: int, n_repeat: int, backend: str, device: Any
) -> Sequence[float]:
    """Milliseconds of each run: of device time where there is a card, else of the host's clock."""
    if not has_card():
        return on_host(fn, warmup, rep, n_warmup, n_repeat)
    with _on_device(device):
        run = _graphed(fn) if backend == "cudagraph" else fn
        for _ in range(n_warmup):
            run()
        spent = 0.0 if n_warmup else warmup
        if n_repeat:
            return benchmark.counted(run, n_repeat, warmup=spent)
        return benchmark.bench(run, warmup=spent, rep=rep).samples


class _on_device:
    """The torch device of a benchmark, where one is named."""

    def __init__(self, device: Any) -> None:
        self.guard: Any = None
        if device is not None:
            import torch

            self.guard = torch.cuda.device(device)

    def __enter__(self) -> None:
        if self.guard is not None:
            self.guard.__enter__()

    def __exit__(self, *problem: Any) -> None:
        if self.guard is not None:
            self.guard.__exit__(*problem)


def _graphed(fn: Callable[[], Any]) -> Callable[[], Any]:
    """One call captured as a CUDA graph; the replay enqueues it."""
    try:
        import torch
    except ImportError:
        raise MissingDependency(
            "backend 'cudagraph' needs torch", fix='pip install torch, or backend="event"'
        ) from None
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        fn()  # lazy initialisation must not happen while capturing
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fn()
    replay: Callable[[], Any] = graph.replay
    return replay


def on_host(run: Callable[[], Any], warmup: float, rep: float, n_warmup: int = 0, n_repeat: int = 0) -> list[float]:
    """Milliseconds of each call by the host's clock, for about `rep` milliseconds and at least three calls, or exactly
    `n_repeat`."""
    end = time.perf_counter() + (0 if n_warmup else warmup / 1e3)
    run()
    for _ in range(n_warmup - 1):
        run()
    while time.perf_counter() < end:
        run()
    samples: list[float] = []
    end = math.inf if n_repeat else time.perf_counter() + rep / 1e3
    while len(samples) < (n_repeat or 3) or (not n_repeat and time.perf_counter() < end):
        start = time.perf_counter()
        run()
        samples.append((time.perf_counter() - start) * 1e3)
    return samples
