"""What a notebook prints for a TileError: the user's own frames and the message with its caret, none of ours."""

from __future__ import annotations

import os
import traceback
from typing import Any

from ..errors import TileError
from ..options import options
from ..places import PACKAGE

MACHINERY = ("IPython", "ipykernel", "traitlets", "asyncio", "tornado", "decorator")
CALL = ".run_cell_magic("


def install() -> None:
    """IPython asks an exception how to show itself by this name."""
    TileError._render_traceback_ = render  # type: ignore[attr-defined]


def remove() -> None:
    if "_render_traceback_" in vars(TileError):
        del TileError._render_traceback_  # type: ignore[attr-defined]


def render(error: TileError) -> list[str]:
    """Lines of text, outermost frame first; all frames where the option asks for them."""
    if options.show_internal_frames:
        return "".join(traceback.format_exception(error)).rstrip("\n").split("\n")
    place = error.place
    lines = []
    for frame in traceback.extract_tb(error.__traceback__):
        told = place is not None and frame.filename == place.file and frame.lineno == place.line
        if is_users(frame.filename) and CALL not in (frame.line or "") and not told:
            lines += [f"{frame.filename}:{frame.lineno}, in {frame.name}", f"    {frame.line}"]
    return [*lines, *f"{type(error).__name__}: {error}".split("\n")]


def is_users(file: str) -> bool:
    """Whether a file is the user's: not ours, and not the notebook's machinery."""
    if file.startswith(PACKAGE):
        return False
    parts = file.split(os.sep)
    return not any(name in parts for name in MACHINERY) and not file.startswith("<frozen")


def trimmed(error: Any) -> Any:
    """The same error without the frames between the notebook and the mistake."""
    return error.with_traceback(None)
