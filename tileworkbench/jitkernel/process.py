"""One compiling process, as its program holds it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import BinaryIO, cast

from . import wire

_PACKAGE = __name__.partition(".")[0]
# The program's own search path, so that the same packages are found; its first line of input brings it.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    f"from {_PACKAGE}.jitkernel.worker import main; main()"
)
# A process group of its own, and no window.
_WINDOWS = 0x0800_0200 if os.name == "nt" else 0


def _search_path() -> list[str]:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [root, *[os.path.abspath(p) for p in sys.path if isinstance(p, str)]]


def is_python() -> bool:
    """Whether `sys.executable` is an interpreter: in a program that embeds one it is that program."""
    return os.path.basename(sys.executable or "").lower().startswith(("python", "pypy"))


def _started(place: str) -> subprocess.Popen[bytes]:
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), place)
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env={**os.environ, **one_thread, **temporary}, creationflags=_WINDOWS,
        start_new_session=not _WINDOWS,  # Ctrl-C at a terminal is the program's
    )  # fmt: skip


class Worker:
    """One compiling process; OSError where none can be started. `ask` gives None when it ended before it answered."""

    def __init__(self) -> None:
        # What it leaves behind when it is ended in the middle of a build is removed with this folder.
        self._place = tempfile.mkdtemp(prefix="tileworkbench-compile-")
        try:
            self._process = _started(self._place)
        except OSError:
            shutil.rmtree(self._place, ignore_errors=True)
            raise
        self._tasks, self._answers = cast(BinaryIO, self._process.stdin), cast(BinaryIO, self._process.stdout)
        self._ready = False

    def ask(self, frame: bytes) -> bytes | None:
        try:
            if not self._ready:
                self._tasks.write(json.dumps(_search_path()).encode() + b"\n")
                self._tasks.flush()
                self._ready = wire.receive(self._answers) == wire.READY
            if not self._ready:
                return None
            wire.send(self._tasks, frame)
            return wire.receive(self._answers)
        except (OSError, ValueError):  # ended, or its pipes were closed by `end`
            return None

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def started(self) -> bool:
        """Whether it ever came to listen."""
        return self._ready

    def end(self) -> int:
        """Ends it, at once; its exit code."""
        with contextlib.suppress(OSError):
            self._process.kill()
        code = self._process.wait()
        for pipe in (self._tasks, self._answers):
            with contextlib.suppress(OSError, ValueError):
                pipe.close()
        shutil.rmtree(self._place, ignore_errors=True)
        return code
