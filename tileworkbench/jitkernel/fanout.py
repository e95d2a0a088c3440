"""Many kernels at a time: their texts are read by threads of the program, and compiled by processes of its own."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from ..options import options
from . import away

T = TypeVar("T")
R = TypeVar("R")
FEW = 4  # kernels; for fewer no process is worth its start
MARGIN = 5.0  # seconds that a thread is given beyond its process, to tell what happened there


def workers(count: int) -> int:
    """How many compile at a time: nine tenths of the processors; TileLang's environment names change it."""
    share = float(os.environ.get("TILELANG_AUTO_TUNING_CPU_UTILITIES", "0.9"))
    wanted = int(os.environ.get("TILELANG_AUTO_TUNING_CPU_COUNTS", "-1"))
    most = int(os.environ.get("TILELANG_AUTO_TUNING_MAX_CPU_COUNT", "-1"))
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    chosen = wanted if wanted > 0 else max(1, int(here * share))
    return max(1, min(chosen, most if most > 0 else chosen, count))


def fan_out(
    build: Callable[[T], R], items: Sequence[T], *, seconds: float | None = None, count: int | None = None
) -> Generator[tuple[T, R | Exception], None, None]:
    """(item, what `build` gave or raised), in order, under the options of the caller. A build that takes longer than
    `seconds` is given up with TimeoutError or BuildError; leaving the loop early gives up the rest."""
    changed = options.changed()
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(away.lease(seconds)) if len(items) >= FEW else None
        pool = ThreadPoolExecutor(count or workers(len(items)), "tileworkbench-compile")
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)

        def one(item: T, started: list[float]) -> R:
            started.append(time.monotonic())
            with options(**changed), place.entered() if place is not None else contextlib.nullcontext():
                return build(item)

        starts: list[list[float]] = [[] for _ in items]
        futures = [pool.submit(one, item, start) for item, start in zip(items, starts, strict=True)]
        for item, future, start in zip(items, futures, starts, strict=True):
            try:
                yield item, _result(future, start, None if seconds is None else seconds + MARGIN)
            except Exception as problem:  # user code runs in `build`: whatever it raises is this item's answer
                yield item, problem


def _result(future: Future[R], started: list[float], seconds: float | None) -> R:
    """The future's result; its time runs from when a thread took it up."""
    while seconds is not None and not future.done():
        left = started[0] + seconds - time.monotonic() if started else 1.0
        try:
            return future.result(max(left, 0.0))
        except TimeoutError:
            if not future.done() and started and started[0] + seconds <= time.monotonic():
                raise TimeoutError(f"not done within {seconds - MARGIN:g} s") from None
    return future.result()
