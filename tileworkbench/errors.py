"""Where something stands in the user's text, and every error that a user can meet.

A user mistake always ends in a `TileError`: what was found, the rule, the fix, and the place with a caret. Each is also
the built-in error that a Python program would expect: a ValueError for what is wrong in what was written, a
RuntimeError for what a machine cannot do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from .places import SNIPPET_COLUMNS, Loc, caret, cells, users_place

__all__ = [
    "ArgumentError",
    "AssumptionError",
    "BuildError",
    "InternalError",
    "LanguageError",
    "LaunchError",
    "LayoutError",
    "Loc",
    "MissingDependency",
    "NotSimulated",
    "Note",
    "OptionError",
    "ResourceError",
    "ShapeError",
    "SimulationError",
    "TargetError",
    "TileError",
    "caret",
]
_E = TypeVar("_E", bound="TileError")
MOST_CALLS = 8  # of the chain that led to a place, in a message


@dataclass(frozen=True, slots=True)
class Note:
    """Something else the reader must see to understand an error, such as the other of two clashing annotations."""

    text: str
    loc: Loc | None = None


class TileError(Exception):
    """The root of the tree. `found` says what is there, `rule` what must hold, `fix` what to write instead, `notes`
    point at other places that matter."""

    code = "tile"

    def __init__(
        self, found: str, *, rule: str = "", fix: str = "", loc: Loc | None = None, notes: tuple[Note, ...] = ()
    ) -> None:
        self.found, self.rule, self.fix, self.loc, self.notes = found, rule, fix, loc, notes
        super().__init__(found)

    def at(self: _E, loc: Loc | None) -> _E:
        """This error with a place, unless it has one already."""
        if self.loc is None:
            self.loc = loc
        return self

    def note(self: _E, text: str, loc: Loc | None = None) -> _E:
        """This error with one more note."""
        self.notes = (*self.notes, Note(text, loc))
        return self

    @property
    def place(self) -> Loc | None:
        """`loc`, else the line of the user's text that was running: where a call of this package was made."""
        return self.loc if self.loc is not None else users_place(self.__traceback__)

    def __str__(self) -> str:
        lines, place = [self.found], self.place
        if place is not None:
            lines += _place("at", place)
            lines += _chain(place.calls)
        for note in self.notes:
            lines += [f"  note: {note.text}", *(_place("at", note.loc) if note.loc is not None else [])]
        lines += [f"  rule: {self.rule}"] if self.rule else []
        lines += [f"  fix: {self.fix}"] if self.fix else []
        return "\n".join(lines)

    def diagnostics(self) -> list[dict[str, object]]:
        """What an editor draws, as plain data: the error first, then its notes and the calls that led to it, innermost
        first. Lines count from 1 (0: no place is known), columns from 0 in UTF-16 units; `file` is the cell or path."""
        message = f"{self.found} (rule: {self.rule})" if self.rule else self.found
        place = self.place
        found = [_diagnostic("error", message, self.fix, self.code, place)]
        found += [_diagnostic("info", note.text, "", self.code, note.loc) for note in self.notes]
        calls = place.calls if place is not None else ()
        found += [
            _diagnostic("info", f"called from here: {self.found}", "", self.code, call) for call in reversed(calls)
        ]
        return found


def _place(word: str, loc: Loc) -> list[str]:
    snippet = caret(loc)
    return [f"  {word} {loc}", *([snippet] if snippet else [])]


def _chain(calls: tuple[Loc, ...]) -> list[str]:
    """The calls that led to a place, innermost first; of a long chain its two ends."""
    lines = [_call(call) for call in reversed(calls)]
    if len(lines) <= MOST_CALLS:
        return lines
    half = MOST_CALLS // 2
    return [*lines[:half], f"  … {len(lines) - 2 * half} more calls …", *lines[-half:]]


def _call(call: Loc) -> str:
    text = "".join(cells(call.source_line().strip()[: SNIPPET_COLUMNS - 20]))
    return f"  called from {call}" + (f": {text}" if text else "")


def _diagnostic(severity: str, message: str, hint: str, code: str, loc: Loc | None) -> dict[str, object]:
    line, col, end_line, end_col = loc.utf16_span() if loc is not None else (0, 0, 0, 0)
    return {
        "file": loc.file if loc is not None else "",
        "line": line,
        "col": col,
        "end_line": end_line,
        "end_col": end_col,
        "severity": severity,
        "message": message,
        "hint": hint,
        "code": code,
    }


class LanguageError(TileError, ValueError):
    """The Python text of a kernel says something the language does not have."""

    code = "language"


class ShapeError(TileError, ValueError):
    """Ranks, extents or dtypes that do not fit one another."""

    code = "shape"


class LayoutError(TileError, ValueError):
    """Two annotations of the user contradict each other."""

    code = "layout"


class TargetError(TileError, RuntimeError):
    """The target has no instruction or option for what was asked."""

    code = "target"


class ResourceError(TileError, RuntimeError):
    """More threads, shared memory or registers than there are; both numbers are named."""

    code = "resource"


class LaunchError(TileError, ValueError):
    """Arguments of a call that do not fit the kernel's parameters. A ValueError too, as Python programs expect it."""

    code = "launch"


class ArgumentError(LaunchError, TypeError):
    """A call that the function's signature does not take, or a configuration of values that no kernel can be kept by.
    A TypeError too, as for any Python function."""

    code = "argument"


class AssumptionError(LaunchError, RuntimeError):
    """Arguments of which what the kernel's text says of every call (T.assume, assert) does not hold."""

    code = "assumption"

    @classmethod
    def of(cls, text: str, loc: Loc | None = None) -> AssumptionError:
        """For the fact that `text` tells, stated at `loc`."""
        rule, fix = "the kernel says it of every call", "call it with such arguments, or take that out of the kernel"
        return cls(text, rule=rule, fix=fix, loc=loc)


class BuildError(TileError, RuntimeError):
    """The device compiler refused the generated text; the place is mapped back to the user's line."""

    code = "build"


class SimulationError(TileError, RuntimeError):
    """The simulator saw an undefined value, an index out of range, a race or a deadlock."""

    code = "simulation"


class NotSimulated(SimulationError):
    """The kernel has a part that runs on a card only; that says nothing about whether it is right."""

    code = "unsimulated"


class OptionError(TileError, ValueError):
    """An unknown option, a value out of range, or a malformed command line of a magic. A ValueError too."""

    code = "option"


class MissingDependency(TileError):
    """An optional package or tool is not there; `fix` is the command that brings it."""

    code = "missing"


class InternalError(TileError):
    """An invariant of the compiler does not hold. Never the user's fault."""

    code = "internal"
