"""A few threads that share one piece of array work. They sleep while they wait, so that a busy machine slows them by no
more than its share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

_pool: ThreadPoolExecutor | None = None


def cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_all(tasks: Sequence[Callable[[], object]]) -> None:
    """Runs the tasks at the same time and returns when all are done; the first error is raised."""
    global _pool
    if _pool is None and len(tasks) > 1:
        _pool = ThreadPoolExecutor(max(cores() - 1, 1), thread_name_prefix="tileworkbench")
    waiting = [_pool.submit(task) for task in tasks[1:]] if _pool is not None else []
    try:
        tasks[0]()
    finally:
        for future in waiting:
            future.exception()
    for future in waiting:
        future.result()


def _forget() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # threads do not live on in a forked process
