from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

from tileworkbench.errors import OptionError
from tileworkbench.runtime import benchmark


class FakeClock:
    """Device time moves by what the work says; a flush costs time too, which must not be counted."""

    def __init__(self) -> None:
        self.now, self.log, self.stamps, self.open = 0.0, [], {}, 0

    @contextlib.contextmanager
    def events(self, count: int) -> Iterator[list[int]]:
        self.open += count
        yield list(range(count))
        self.open -= count

    def record(self, event: int) -> None:
        self.stamps[event] = self.now

    def elapsed(self, start: int, end: int) -> float:
        return self.stamps[end] - self.stamps[start]

    def flush(self) -> None:
        self.now += 100.0
        self.log.append("flush")

    def wait(self) -> None:
        self.log.append("wait")


def test_each_run_is_timed_alone_and_counted() -> None:
    clock, runs = FakeClock(), []

    def run() -> None:
        runs.append(1)
        clock.now += 0.5 + 0.25 * (len(runs) % 3)

    timing = benchmark.bench(run, warmup=10, rep=20, clock=clock)
    assert timing.runs == 20 and len(timing.samples) == 20 and clock.open == 0
    assert set(timing.samples) == {0.5, 0.75, 1.0} and timing.flushed and timing.least == 0.5
    assert timing.median == np.median(timing.samples)
    assert timing.p20 == pytest.approx(np.quantile(timing.samples, 0.2))
    assert timing.p80 == pytest.approx(np.quantile(timing.samples, 0.8))
    assert clock.log.count("flush") == 25
    assert timing.host >= 0


def test_a_number_of_runs_is_kept_to_exactly() -> None:
    clock, runs = FakeClock(), []

    def run() -> None:
        runs.append(1)
        clock.now += float(len(runs))

    assert benchmark.counted(run, 3, clock=clock) == [1.0, 2.0, 3.0] and len(runs) == 3
    samples = benchmark.counted(run, 2, warmup=40, clock=clock)  # 1 run, 5 timed ones of 9 ms at most, 40 // 9 more
    assert samples == [14.0, 15.0] and len(runs) == 15
    with pytest.raises(OptionError):
        benchmark.counted(run, 0, clock=clock)


def test_no_flush_and_bounds() -> None:
    clock = FakeClock()
    timing = benchmark.bench(lambda: setattr(clock, "now", clock.now + 1000.0), flush=False, clock=clock)
    assert timing.runs == benchmark.FEWEST and "flush" not in clock.log and not timing.flushed
    for bad in ({"rep": 0}, {"warmup": -1}):
        with pytest.raises(OptionError):
            benchmark.bench(lambda: None, clock=clock, **bad)
