"""Times GPU work by events on the current stream, with a cold L2 cache between runs; needs the driver alone."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import OptionError
from . import driver as cuda_driver
from .driver import CudaDriver

_L2_SIZE = 38  # CUdevice_attribute
FEWEST, MOST = 5, 10_000  # runs


@dataclass(frozen=True)
class Timing:
    """Milliseconds a call on the device: the median, quantiles at 20 and 80 percent, the least, how many runs, all of
    them in order, and whether L2 was flushed between them. `host` is the host's milliseconds a call, not waited for."""

    median: float
    p20: float
    p80: float
    least: float
    runs: int
    samples: tuple[float, ...]
    flushed: bool
    host: float


class Clock(Protocol):
    """What a benchmark needs of a device."""

    def events(self, count: int) -> contextlib.AbstractContextManager[list[int]]: ...
    def record(self, event: int) -> None: ...
    def elapsed(self, start: int, end: int) -> float: ...
    def flush(self) -> None: ...
    def wait(self) -> None: ...


def bench(
    run: Callable[[], Any], *, warmup: float = 25.0, rep: float = 100.0, flush: bool = True, clock: Clock | None = None
) -> Timing:
    """Runs for about `warmup` + `rep` milliseconds of device time and gives each run's own. `run` must only enqueue
    work on the current stream. L2 is overwritten before each run unless `flush` is False."""
    if warmup < 0 or rep <= 0:
        raise OptionError(
            f"warmup {warmup} and rep {rep} milliseconds",
            rule="warmup is at least 0, rep above 0",
            fix="warmup=25, rep=100",
        )
    if clock is None:
        with DeviceClock() as own:
            return bench(run, warmup=warmup, rep=rep, flush=flush, clock=own)
    estimate = _warmed(clock, run, warmup, flush)
    count = max(FEWEST, min(int(rep / estimate), MOST))
    host = _host(clock, run, min(count, 200))
    samples = _timed(clock, run, count, flush)
    return summary(samples, flush, host)


def counted(
    run: Callable[[], Any], count: int, *, warmup: float = 0.0, flush: bool = True, clock: Clock | None = None
) -> list[float]:
    """Milliseconds of exactly `count` runs, as `bench` times them; nothing else runs without a `warmup`."""
    if count < 1:
        raise OptionError(f"{count} runs to time", rule="at least one", fix="repeat=100")
    if clock is None:
        with DeviceClock() as own:
            return counted(run, count, warmup=warmup, flush=flush, clock=own)
    if warmup > 0:
        _warmed(clock, run, warmup, flush)
    clock.wait()
    return _timed(clock, run, count, flush)


def _warmed(clock: Clock, run: Callable[[], Any], warmup: float, flush: bool) -> float:
    """Runs for about `warmup` milliseconds, and gives those of one run."""
    run()
    clock.wait()
    estimate = max(_timed(clock, run, FEWEST, flush)) or 1e-3
    for _ in range(min(int(warmup / estimate), MOST)):
        run()
    return estimate


def summary(samples: list[float], flushed: bool, host: float) -> Timing:
    """A Timing from its runs' milliseconds; quantiles are interpolated."""
    ordered = sorted(samples)

    def quantile(q: float) -> float:
        at = q * (len(ordered) - 1)
        low = int(at)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (at - low)

    return Timing(quantile(0.5), quantile(0.2), quantile(0.8), ordered[0], len(ordered), tuple(samples), flushed, host)


def _timed(clock: Clock, run: Callable[[], Any], count: int, flush: bool) -> list[float]:
    with clock.events(2 * count) as events:
        for start, end in zip(events[::2], events[1::2], strict=True):
            if flush:
                clock.flush()
            clock.record(start)
            run()
            clock.record(end)
        clock.wait()
        return [clock.elapsed(start, end) for start, end in zip(events[::2], events[1::2], strict=True)]


def _host(clock: Clock, run: Callable[[], Any], count: int) -> float:
    clock.wait()
    start = time.perf_counter()
    for _ in range(count):
        run()
    seconds = time.perf_counter() - start
    clock.wait()
    return 1e3 * seconds / count


class DeviceClock:
    """Events and an L2-sized buffer on the current device and stream; a context manager."""

    def __init__(self, driver: CudaDriver | None = None) -> None:
        self._driver = driver or cuda_driver.cuda()
        self._device = max(self._driver.current_device(), 0)
        if self._driver.current_device() < 0:
            self._driver.make_current(self._device)
        self._stream = ctypes.c_void_p(current_stream(self._device))
        # Twice the cache, so that nothing of the last run is left whatever the replacement policy.
        self._size = max(2 * self._driver.attribute(self._device, _L2_SIZE), 64 << 20)
        self._buffer = 0

    def __enter__(self) -> DeviceClock:
        return self

    def __exit__(self, *_: object) -> None:
        if self._buffer:
            self.wait()
            self._driver.free(self._buffer)
            self._buffer = 0

    @contextlib.contextmanager
    def events(self, count: int) -> Iterator[list[int]]:
        made: list[int] = []
        try:
            for _ in range(count):
                event = ctypes.c_void_p()
                self._driver.call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(0))
                made.append(int(event.value or 0))
            yield made
        finally:
            for handle in made:
                self._driver.call("cuEventDestroy_v2", ctypes.c_void_p(handle))

    def record(self, event: int) -> None:
        self._driver.call("cuEventRecord", ctypes.c_void_p(event), self._stream)

    def elapsed(self, start: int, end: int) -> float:
        value = ctypes.c_float()
        self._driver.call("cuEventElapsedTime", ctypes.byref(value), ctypes.c_void_p(start), ctypes.c_void_p(end))
        return value.value

    def flush(self) -> None:
        self._buffer = self._buffer or self._driver.allocate(self._size)
        pointer, size = ctypes.c_uint64(self._buffer), ctypes.c_size_t(self._size)
        self._driver.call("cuMemsetD8Async", pointer, ctypes.c_ubyte(0), size, self._stream)

    def wait(self) -> None:
        self._driver.synchronize(int(self._stream.value or 0))


def current_stream(device: int) -> int:
    """The current stream of torch where it runs on CUDA, else of CuPy where it is loaded, else the default stream."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch._C._cuda_getCurrentRawStream(device))
    return int(cupy.cuda.get_current_stream().ptr) if cupy is not None else 0
