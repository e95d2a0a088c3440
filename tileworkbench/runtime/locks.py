"""Locks around a build: between threads by key, between processes by an advisory lock on a file."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows: builds are only not shared between processes
    fcntl = None  # type: ignore[assignment]

_threads: dict[str, tuple[threading.Lock, int]] = {}
_guard = threading.Lock()


@contextlib.contextmanager
def thread_lock(key: str) -> Iterator[None]:
    """Held by the one thread of this process that works on `key`; forgotten when nobody waits for it."""
    with _guard:
        lock, users = _threads.get(key, (threading.Lock(), 0))
        _threads[key] = (lock, users + 1)
    try:
        with lock:
            yield
    finally:
        with _guard:
            lock, users = _threads[key]
            if users == 1:
                del _threads[key]
            else:
                _threads[key] = (lock, users - 1)


@contextlib.contextmanager
def file_lock(descriptor: int | None, timeout: float) -> Iterator[None]:
    """Waits for the file's lock up to `timeout` seconds and goes on without it then. It takes the descriptor over; the
    system frees the lock when its holder dies."""
    if descriptor is None:
        yield
        return
    try:
        if fcntl is not None:
            _wait(descriptor, time.monotonic() + timeout)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _wait(descriptor: int, deadline: float) -> None:
    pause = 0.001
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                return
        except OSError:
            return  # this file system has no locks
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def _after_fork() -> None:
    global _guard
    _guard = threading.Lock()
    _threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
