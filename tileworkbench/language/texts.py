"""Device source that a user gives: as text, or as the path of a file; and where its lines stand."""

from __future__ import annotations

import linecache
import os
from pathlib import Path
from typing import Any

from ..errors import Loc
from .faults import fault, shown

_SIGNS = ("\n", "__global__", 'extern "C"', "#include")  # no path has these
_SUFFIXES = (".cu", ".cuh", ".cuda", ".cpp", ".cc", ".c")


def text_place(text: str, here: Loc | None) -> Loc | None:
    """The place of a text's first line where the file or cell of `here` holds it as it is; else None."""
    if here is None or not text:
        return None
    whole = "".join(linecache.getlines(here.file))
    if whole.count(text) != 1:
        return None
    return Loc(here.file, whole.count("\n", 0, whole.index(text)) + 1)


def text_or_file(given: Any, what: str, here: Loc | None) -> tuple[str, Loc | None]:
    """The text behind `given`, and the place of its first line. What names a file is that file's text; LanguageError
    for a path of no file and for what is neither."""
    try:
        name = os.fspath(given)
    except TypeError:
        name = b""
    if not isinstance(name, str) or not name.strip():
        raise fault(f"{what}={shown(given)}", "it is CUDA C++ as text, or the path of a file", f'{what}="kernel.cu"')
    if any(sign in name for sign in _SIGNS):
        return name, text_place(name, here)
    path = Path(name).expanduser()
    if not path.is_file():
        raise fault(
            f"{what}: there is no file {shown(name)}",
            "a path leads to a file, from the working directory where it is relative",
            "correct the path" if _is_path(name) else f"give the text, or a path; {os.getcwd()} has no such file",
        )
    try:
        return path.read_text(encoding="utf-8"), Loc(str(path.resolve()), 1)
    except (OSError, UnicodeDecodeError) as error:
        raise fault(
            f"{what}: {shown(name)} cannot be read: {error}", "source is UTF-8 text", "give another file"
        ) from None


def _is_path(name: str) -> bool:
    return os.path.sep in name or name.endswith(_SUFFIXES)
