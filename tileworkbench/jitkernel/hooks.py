"""Functions of the user that edit the text of kernels before it is built, one a dialect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..codegen.source import Source
from ..errors import LanguageError
from ..target import Target

Edit = Callable[[str, Target], str]
_edits: dict[str, Edit] = {}


def register(dialect: str, edit: Edit | None, override: bool = True) -> None:
    """From now on the text of every kernel for a dialect ("cuda", "hip") passes through `edit(text, target)`; None
    removes it. Kernels that were built already stay as they are."""
    if edit is None:
        _edits.pop(dialect, None)
    elif override or dialect not in _edits:
        _edits[dialect] = edit


def is_edited(target: Target) -> bool:
    """Whether the text of kernels for a target is edited by the user."""
    return target.dialect in _edits


def edited(source: Source, target: Target) -> Source:
    """The source with the user's edits. Its line map is kept; lines that the edit moved are shown where they were."""
    edit = _edits.get(target.dialect)
    if edit is None:
        return source
    text = edit(source.text, target)
    if not isinstance(text, str):
        raise LanguageError(
            f"the hook for {target.dialect} text gave {type(text).__name__}",
            rule="it takes the text and the target and gives the text",
            fix="return the edited text",
        )
    return replace(source, text=text)
