"""What a program and its compiling processes say to each other: frames of plain data over a pipe."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, BinaryIO

from .. import errors
from ..errors import InternalError, TileError
from ..ir.kernel import Kernel
from ..ir.plain import Plain, read
from ..options import KNOBS, options
from ..runtime import cache
from ..target import Target
from .made import Made

READY = b"ready"


@dataclass(frozen=True)
class Task:
    """A kernel to compile, under the caller's options by name."""

    tile: Kernel
    target: Target
    settings: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What was made, or a TileError's parts; neither when something else was raised, which the caller meets itself."""

    made: tuple[Any, ...] | None = None
    error: tuple[Any, ...] | None = None
    stages: tuple[tuple[str, float], ...] = ()
    cached: bool = False


def settings() -> dict[str, Any]:
    """The options that a compilation hangs on, as they are here and now."""
    disk = cache.default()
    where = {"cache_dir": str(disk.path), "cache_size": disk.limit} if disk.path is not None else {}
    chosen = {name: getattr(options, name) for name, knob in KNOBS.items() if knob.codegen}
    return {"cache": disk.path is not None, "compile_timeout": options.compile_timeout, **where, **chosen}


def pack(message: Task | Answer) -> bytes:
    """A frame's bytes; NotPlain when a kernel holds what no other process can know."""
    plain = Plain(message)
    return json.dumps([plain.text, plain.files]).encode()


def unpack(frame: bytes) -> Any:
    """The message of a frame; InternalError for one that is not ours."""
    try:
        text, files = json.loads(frame)
    except (ValueError, TypeError):
        raise InternalError("a frame that is no message") from None
    return read(text, files)


def send(pipe: BinaryIO, frame: bytes) -> None:
    pipe.write(len(frame).to_bytes(8, "little") + frame)
    pipe.flush()


def receive(pipe: BinaryIO) -> bytes | None:
    """The next frame; None when the other side has ended."""
    head = pipe.read(8)
    if len(head) < 8:
        return None
    size = int.from_bytes(head, "little")
    frame = pipe.read(size)
    return frame if len(frame) == size else None


def told(error: TileError) -> tuple[Any, ...]:
    """An error as plain data."""
    return type(error).__name__, error.found, error.rule, error.fix, error.loc, error.notes


def raised(parts: tuple[Any, ...]) -> TileError:
    """The error behind its parts."""
    name, found, rule, fix, loc, notes = parts
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, TileError)):
        kind = InternalError
    return kind(found, rule=rule, fix=fix, loc=loc, notes=notes)


def answer_of(made: Made, stages: dict[str, float], cached: bool) -> Answer:
    missing = told(made.missing) if made.missing is not None else None
    return Answer((made.source, made.binary, missing), None, tuple(stages.items()), cached)


def made_of(parts: tuple[Any, ...]) -> Made:
    source, binary, missing = parts
    return Made(source, binary, raised(missing) if missing is not None else None)  # type: ignore[arg-type]
