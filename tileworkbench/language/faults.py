"""Errors of the reader, and where they happened: a traceback's staged frames name the place and the call chain."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from types import CodeType, TracebackType

from ..errors import LanguageError, Loc, TileError
from ..ir.node import Node
from ..options import options
from .source import characters

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
MARK = "__tw"  # the free variable through which staged code reaches its stage


def fault(found: str, rule: str = "", fix: str = "", loc: Loc | None = None) -> LanguageError:
    """A LanguageError; a `loc` given here is kept as it is, otherwise the failing expression's place is filled in."""
    error = LanguageError(found, rule=rule, fix=fix, loc=loc)
    error.exact = loc is not None  # type: ignore[attr-defined]
    return error


def nearest(name: str, among: Iterable[str], otherwise: str = "") -> str:
    """The hint that names the closest known name."""
    close = difflib.get_close_matches(name, list(among), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else otherwise


def is_staged(code: CodeType) -> bool:
    return MARK in code.co_freevars


def frames(tb: TracebackType | None) -> Iterator[TracebackType]:
    """The frames of a traceback, outermost first."""
    while tb is not None:
        yield tb
        tb = tb.tb_next


def position(tb: TracebackType) -> Loc:
    """The span of user text that was being executed in this frame."""
    code = tb.tb_frame.f_code
    line, end_line, col, end_col = list(code.co_positions())[tb.tb_lasti // 2]
    line = line or tb.tb_lineno
    end_line = end_line or line
    file = code.co_filename
    return Loc(file, line, characters(file, line, col or 0), end_line, characters(file, end_line, end_col or 0))


def place(error: BaseException) -> Loc | None:
    """The innermost staged place of an error, with the staged calls that led there."""
    chain = [position(tb) for tb in frames(error.__traceback__) if is_staged(tb.tb_frame.f_code)]
    if not chain:
        return None
    *calls, last = chain
    return Loc(last.file, last.line, last.col, last.end_line, last.end_col, tuple(calls))


def settle(error: Exception) -> Exception:
    """The error that the user is to see for what went wrong while tracing.

    Tile errors get the place of the failing expression. A name missing in staged text becomes a LanguageError. Errors
    of the user's own Python stay what they are; frames of this package are left out of all tracebacks."""
    if isinstance(error, TileError):
        if not getattr(error, "exact", False):
            error.loc = place(error) or error.loc
            error.exact = True  # type: ignore[attr-defined]
    elif isinstance(error, NameError) and last_is_staged(error):
        error = missing_name(error)
    elif isinstance(error, AttributeError) and isinstance(error.obj, Node):
        error = missing_attribute(error)
    return hide_internal_frames(error)


def last_is_staged(error: BaseException) -> bool:
    chain = list(frames(error.__traceback__))
    return bool(chain) and is_staged(chain[-1].tb_frame.f_code)


def missing_name(error: NameError) -> LanguageError:
    """The LanguageError for a name that staged text reads before it has a value."""
    name = getattr(error, "name", None) or str(error).split("'")[1]
    *_, last = frames(error.__traceback__)
    known = [n for n in (*last.tb_frame.f_locals, *last.tb_frame.f_globals) if not n.startswith("_")]
    new = fault(
        f"`{name}` is used before it is defined",
        "a name is assigned before it is read, in a branch that is taken while compiling",
        nearest(name, known, f"assign `{name}` first"),
        place(error),
    )
    return new.with_traceback(error.__traceback__)


def missing_attribute(error: AttributeError) -> LanguageError:
    """The LanguageError for an attribute that tiles and tile values do not have."""
    what = f"`{error.obj.name}`" if hasattr(error.obj, "name") else "a tile value"
    new = fault(
        f"{what} has no attribute `{error.name}`",
        "tiles have shape, dtype, strides, ndim, data and scope(); tile values have dtype",
        nearest(str(error.name), ("shape", "dtype", "strides", "ndim", "data", "scope"), "use a function of T"),
        place(error),
    )
    return new.with_traceback(error.__traceback__)


def hide_internal_frames(error: Exception) -> Exception:
    """`error` with this package's frames cut out of its traceback, unless the option keeps them."""
    if options.show_internal_frames:
        return error
    kept = [tb for tb in frames(error.__traceback__) if not tb.tb_frame.f_code.co_filename.startswith(PACKAGE)]
    below: TracebackType | None = None
    for tb in reversed(kept):
        below = TracebackType(below, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return error.with_traceback(below)
