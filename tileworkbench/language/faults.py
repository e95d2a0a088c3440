"""Errors of the reader, and where they happened: a traceback's staged frames name the place and the call chain."""

from __future__ import annotations

import difflib
import dis
from collections.abc import Iterable
from types import CodeType, TracebackType
from typing import Any

from ..errors import LanguageError, Loc, ShapeError, TileError
from ..ir.expr import Buffer, Expr
from ..ir.node import Node
from ..ir.stmt import Region
from ..ir.text import show_expr
from ..options import options
from ..places import PACKAGE, frames, is_installed, position

MARK = "__tw"  # the free variable through which staged code reaches its stage
MOST_SHOWN = 80  # characters of a value in a message


class Misnested(LanguageError):
    """Loops, tile operations and launches that do not go into one another. A T.prim_func tells it when it is compiled:
    a program may make such a kernel and never use it."""


class LateExtent(ShapeError):
    """A tile's extent is a size of the call's tensors. A T.prim_func tells it when it is read as a kernel; compiled, it
    is read again for the sizes of each call."""

    symbols: frozenset[Any] = frozenset()
    params: tuple[Any, ...] = ()

    def of(self, symbols: Iterable[Any], params: Iterable[Any]) -> LateExtent:
        """This error with the symbols that it waits for and the function's parameters."""
        self.symbols, self.params = frozenset(symbols), tuple(params)
        return self


def fault(found: str, rule: str = "", fix: str = "", loc: Loc | None = None) -> LanguageError:
    """A LanguageError; a `loc` given here is kept as it is, otherwise the failing expression's place is filled in."""
    error = LanguageError(found, rule=rule, fix=fix, loc=loc)
    error.exact = loc is not None  # type: ignore[attr-defined]
    return error


def exact(error: TileError) -> TileError:
    """Marks an error whose place is already as good as it gets."""
    error.exact = True  # type: ignore[attr-defined]
    return error


def shown(value: Any) -> str:
    """A value in a message: tile values as the user wrote them, all else as Python shows it, kept short."""
    if isinstance(value, Buffer):
        return f"`{value.name}`"
    if isinstance(value, Expr | Region):
        return f"`{show_expr(value)}`"
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        inside = ", ".join(map(shown, value)) + "," * (isinstance(value, tuple) and len(value) == 1)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    made = type(value).__name__ if callable(value) else repr(value)
    return made if len(made) <= MOST_SHOWN else f"{made[:MOST_SHOWN]}…"


def misnested(found: str, rule: str, fix: str, loc: Loc | None) -> Misnested:
    """A `Misnested` at a place."""
    error = Misnested(found, rule=rule, fix=fix, loc=loc)
    error.exact = loc is not None  # type: ignore[attr-defined]
    return error


def nearest(name: str, among: Iterable[str], otherwise: str = "") -> str:
    """The hint that names the closest known name."""
    close = difflib.get_close_matches(name, list(among), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else otherwise


def is_staged(code: CodeType) -> bool:
    """Whether code is a kernel's own text: the rewritten function, or a lambda or comprehension in it."""
    return MARK in code.co_freevars or f"{MARK}_function.<locals>" in code.co_qualname


def place(error: BaseException) -> Loc | None:
    """The innermost staged place of an error, with the staged calls that led there."""
    staged = [tb for tb in frames(error.__traceback__) if is_staged(code_of(tb))]
    if not staged:
        return None
    # A lambda or comprehension is part of the text around it, not a call of its own.
    kept = [
        tb for tb, below in zip(staged, (*staged[1:], None), strict=True) if below is None or not _part(code_of(below))
    ]
    *calls, last = map(position, kept)
    return Loc(last.file, last.line, last.col, last.end_line, last.end_col, tuple(calls))


def settle(error: Exception) -> Exception:
    """The error that the user is to see for what went wrong while tracing.

    Tile errors get the place of the failing expression. What Python or a library refuses in the kernel's own text
    becomes a LanguageError; what the user's text raises, there or in a helper of theirs, stays what it is. Frames of
    this package are left out of all tracebacks."""
    if isinstance(error, TileError):
        if not getattr(error, "exact", False):
            error.loc = place(error) or error.loc
            error.exact = True  # type: ignore[attr-defined]
    elif isinstance(error, NameError) and last_is_staged(error):
        error = missing_name(error)
    elif isinstance(error, AttributeError) and isinstance(error.obj, Node):
        error = missing_attribute(error)
    elif refused_by_python(error):
        error = refused(error)
    return hide_internal_frames(error)


def last_is_staged(error: BaseException) -> bool:
    chain = list(frames(error.__traceback__))
    return bool(chain) and is_staged(chain[-1].tb_frame.f_code)


def refused_by_python(error: Exception) -> bool:
    """Whether the kernel's own text asked Python for something impossible, rather than raised an error itself."""
    if isinstance(error, AssertionError | ImportError | Warning):
        return False
    own = [
        tb for tb in frames(error.__traceback__) if is_staged(code_of(tb)) or not is_installed(code_of(tb).co_filename)
    ]
    if not own or not is_staged(code_of(own[-1])):
        return False
    return dis.opname[code_of(own[-1]).co_code[own[-1].tb_lasti]] not in ("RAISE_VARARGS", "RERAISE")


def refused(error: Exception) -> LanguageError:
    """The LanguageError for what Python refuses in a kernel's text."""
    found, fix = f"{type(error).__name__}: {error}", "correct it, or compute it before the kernel"
    if isinstance(error, AttributeError) and error.name:
        owner = getattr(error.obj, "__name__", None) or f"a {type(error.obj).__name__}"
        found = f"{owner} has no attribute `{error.name}`"
        fix = nearest(error.name, [name for name in dir(error.obj) if not name.startswith("_")], fix)
    rule = "Python values in a kernel's text are computed while it is read, and Python refuses this"
    return fault(found, rule, fix, place(error)).with_traceback(error.__traceback__)


def _part(code: CodeType) -> bool:
    return code.co_name.startswith("<")


def code_of(tb: TracebackType) -> CodeType:
    return tb.tb_frame.f_code


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
