"""Lets a build in this process be stopped: by Ctrl-C, and by the option `compile_timeout`."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from ..errors import BuildError

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class Watch:
    """NVRTC asks it at many points whether to go on (hundreds a build; 0.8 s apart at most was seen, in ptxas)."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self._interrupted = self._expired = False
        self._callback = _CALLBACK(self._stop)  # kept alive as long as the compiler may call it

    def attach(self, api: Any, program: object) -> None:
        """Registers with one program of an NVRTC that can be stopped (12.8 and later)."""
        if hasattr(api, "nvrtcSetFlowCallback"):
            api.nvrtcSetFlowCallback(program, ctypes.cast(self._callback, ctypes.c_void_p).value, 0)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Notes an interrupt during the block instead of raising it: raised inside the compiler's callback it would be
        lost. Only the main thread gets interrupts."""
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            yield
            return
        signal.signal(signal.SIGINT, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def raise_if_stopped(self, entry: str) -> None:
        """KeyboardInterrupt for one that came, or a BuildError when time ran out."""
        if self._interrupted:
            raise KeyboardInterrupt
        if self._expired:
            raise BuildError(
                f"building kernel {entry!r} took longer than {self._seconds:g} s",
                rule="the option compile_timeout bounds a build",
                fix="unroll less, use smaller tiles, or raise the option compile_timeout",
            )

    def _note(self, _number: int, _frame: object) -> None:
        self._interrupted = True

    def _stop(self, _payload: object, _reserved: object) -> int:
        self._expired = self._expired or time.monotonic() > self._deadline
        return int(self._expired or self._interrupted)
