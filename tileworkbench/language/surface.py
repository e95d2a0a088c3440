"""Names that need the reader: T.macro and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .macro import Macro
from .reader import defining_scope, stage


def macro(func: Callable[..., Any] | None = None) -> Any:
    """A function inlined into the kernels that call it; usable with and without parentheses."""
    if func is None:
        return macro
    return Macro(func, defining_scope(1), stage)


def inline(func: Callable[..., Any]) -> Macro:
    """T.macro for methods and helpers."""
    return Macro(func, defining_scope(1), stage)
