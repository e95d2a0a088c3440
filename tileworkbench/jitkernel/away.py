"""Compiling processes of a program: started when many kernels are compiled, kept for the next time, ended with it.

Passes are Python, so threads do not run them beside one another, and they would disturb the timing of kernels in the
same process. A process is an interpreter that imports the compiler and nothing else: the program's own script or cells
are never run again, CUDA is not touched, and kernels travel as plain data. Whatever cannot be done there (no process
starts, a kernel holds a user's function) is done by the caller itself.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar

from ..errors import BuildError, InternalError
from ..ir.kernel import Kernel
from ..ir.plain import NotPlain
from ..runtime import nvrtc
from ..target import Target
from . import wire
from .made import Made
from .process import Worker, is_python
from .timing import Timing
from .wire import Answer, Task

IDLE = 60.0  # seconds until processes that nobody uses are ended


class Pool:
    """The processes of this program. `usable` turns False for good when one cannot be started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._timer: threading.Timer | None = None
        self.usable = True

    def take(self) -> Worker | None:
        with self._lock:
            self._stop_timer()
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                worker.end()
            if not self.usable or not is_python():
                return None
        try:
            return Worker()
        except OSError:
            self.usable = False
            return None

    def give(self, worker: Worker) -> None:
        with self._lock:
            self._idle.append(worker)
            self._stop_timer()
            self._timer = threading.Timer(IDLE, self.end)
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """Ends the processes that nobody uses."""
        with self._lock:
            self._stop_timer()
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


pool = Pool()


class Lease:
    """Compiling processes for the length of a block; each compilation may take `seconds`."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._busy: set[Worker] = set()
        self._lock = threading.Lock()
        self._closed = False

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Compilations of this thread go to the processes."""
        token = _here.set(self)
        try:
            yield
        finally:
            _here.reset(token)

    def close(self) -> None:
        """Stops what is still being compiled."""
        with self._lock:
            self._closed, busy = True, list(self._busy)
        for worker in busy:
            worker.end()

    def build(self, tile: Kernel, target: Target) -> Answer | None:
        """What a process made; None when the caller has to compile. BuildError when time ran out or it died."""
        try:
            frame = wire.pack(Task(tile, target, wire.settings()))
        except NotPlain:
            return None
        worker = pool.take()
        if worker is None:
            return None
        with self._lock:
            if self._closed:
                pool.give(worker)
                raise BuildError(f"compiling `{tile.name}` was given up", loc=tile.loc)
            self._busy.add(worker)
        late = threading.Event()
        answer = self._asked(worker, frame, late)
        with self._lock:
            self._busy.discard(worker)
            kept = answer is not None and not self._closed and not late.is_set()
        code = None if kept else worker.end()
        if kept:
            pool.give(worker)
        if answer is not None:
            return _understood(answer)
        if not worker.started and not late.is_set() and not self._closed:
            pool.usable = False
            return None
        raise _lost(tile, self.seconds if late.is_set() else None, code)

    def _asked(self, worker: Worker, frame: bytes, late: threading.Event) -> bytes | None:
        if self.seconds is None:
            return worker.ask(frame)

        def stop() -> None:
            late.set()
            worker.end()

        watch = threading.Timer(self.seconds, stop)
        watch.daemon = True
        watch.start()
        try:
            return worker.ask(frame)
        finally:
            watch.cancel()


_here: ContextVar[Lease | None] = ContextVar("tileworkbench_away", default=None)


@contextlib.contextmanager
def lease(seconds: float | None = None) -> Iterator[Lease]:
    """Processes for a block; what they still do at its end is stopped."""
    made = Lease(seconds)
    try:
        yield made
    finally:
        made.close()


def build(tile: Kernel, target: Target, timing: Timing) -> Made | None:
    """A compilation by one of the caller's processes; None where it has none, or where they cannot. Errors are raised
    as they were there, with the same places."""
    place = _here.get()
    answer = place.build(tile, target) if place is not None else None
    if answer is None:
        return None
    if answer.error is not None:
        raise wire.raised(answer.error)
    made = wire.made_of(answer.made) if answer.made is not None else None
    if made is None or not _same_compiler(made):
        return None
    for name, seconds in answer.stages:
        timing.stages[name] = timing.stages.get(name, 0.0) + seconds
    timing.cached = answer.cached
    return made


def _same_compiler(made: Made) -> bool:
    """Whether the process found the device compiler that is used here: which one is found may hang on what the program
    has loaded already."""
    if made.binary is None:
        return False
    return made.source.dialect != "cuda" or made.binary.compiler == nvrtc.version()


def _understood(frame: bytes) -> Answer | None:
    try:
        answer = wire.unpack(frame)
    except InternalError:
        return None
    return answer if isinstance(answer, Answer) else None


def _lost(tile: Kernel, seconds: float | None, code: int | None) -> BuildError:
    if seconds is not None:
        return BuildError(
            f"compiling `{tile.name}` took longer than {seconds:g} s", rule="one compilation has `timeout` seconds",
            fix="use smaller tiles, unroll less, or raise the timeout", loc=tile.loc,
        )  # fmt: skip
    return BuildError(
        f"the process that compiled `{tile.name}` ended with code {code}",
        rule="a compilation ends with code or an error",
        fix="compile this kernel alone; there may be too little memory for so many at a time", loc=tile.loc,
    )  # fmt: skip


def _after_fork() -> None:
    """The child of a fork leaves its parent's processes alone."""
    global pool
    pool = Pool()


atexit.register(lambda: pool.end())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
