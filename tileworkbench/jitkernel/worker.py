"""A compiling process: reads kernels from its input, writes what became of them, ends with its input.

It knows the compiler alone: no array library, no card and nothing of the user's program.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import Any, BinaryIO

from ..errors import InternalError, TileError
from ..ir.plain import NotPlain
from ..options import options
from . import wire
from .timing import Timing
from .variant import build_here
from .wire import Answer, Task


def main() -> None:
    """Serves until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the program's to handle
    # Whatever prints while compiling must not get between the frames.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    gc.freeze()  # what was imported lives as long as the process: no collection need look at it
    serve(sys.stdin.buffer, answers)


def serve(tasks: BinaryIO, answers: BinaryIO) -> None:
    """Answers every task in order; says first that it listens."""
    wire.send(answers, wire.READY)
    while (frame := wire.receive(tasks)) is not None:
        wire.send(answers, _packed(_answer(frame)))


def _answer(frame: bytes) -> Answer:
    try:
        task: Any = wire.unpack(frame)
        return _done(task) if isinstance(task, Task) else Answer()
    except InternalError:
        return Answer()
    except TileError as error:
        return Answer(error=wire.told(error))
    except Exception:  # the caller compiles this kernel itself and meets what was raised here
        return Answer()


def _done(task: Task) -> Answer:
    timing = Timing()
    with options(**task.settings):
        variant = build_here(task.tile, task.target, timing)
    return wire.answer_of(variant.made, timing.stages, timing.cached)


def _packed(answer: Answer) -> bytes:
    try:
        return wire.pack(answer)
    except NotPlain:
        return wire.pack(Answer())
