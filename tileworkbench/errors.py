"""Where something stands in the user's text, and every error that a user can meet.

A user mistake always ends in a `TileError`: what was found, the rule, the fix, and the place with a caret.
"""

from __future__ import annotations

import linecache
import unicodedata
from dataclasses import dataclass
from typing import TypeVar

_E = TypeVar("_E", bound="TileError")
SNIPPET_COLUMNS = 100  # of a longer source line only a window around the caret is shown
_TAB = 4
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class Loc:
    """A span of the user's text: `file` is a path or a registered cell name; lines count from 1, columns from 0 in
    characters (not UTF-8 bytes). `calls` is the chain of macro or helper calls that led here, outermost first.
    `end_line` 0 stands for `line`; an end that is not after the start stands for one character."""

    file: str
    line: int
    col: int = 0
    end_line: int = 0
    end_col: int = 0
    calls: tuple[Loc, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col + 1}"

    def source_line(self) -> str:
        return linecache.getline(self.file, self.line).rstrip("\r\n")

    def span(self) -> tuple[int, int, int, int]:
        """(line, col, end line, end col), the end filled in and after the start."""
        end = (max(self.end_line, self.line), self.end_col)
        if end <= (self.line, self.col):
            end = (self.line, self.col + 1)
        return self.line, self.col, *end

    def utf16_span(self) -> tuple[int, int, int, int]:
        """`span` with columns in UTF-16 units, as editors count; unchanged where the text cannot be had."""
        line, col, end_line, end_col = self.span()
        return line, _utf16(self.source_line(), col), end_line, _utf16(_line(self.file, end_line), end_col)


def caret(loc: Loc) -> str:
    """The source line of `loc` with carets under the span, and the last line too of a longer span; empty when the text
    cannot be had. Plain text without colours; tabs become spaces, and what could disturb a terminal is replaced."""
    line, col, end_line, end_col = loc.span()
    text = loc.source_line()
    if not text.strip():
        return ""
    if end_line == line:
        return _marked(line, text, col, end_col)
    parts = [_marked(line, text, col, len(text.rstrip()))]
    last = _line(loc.file, end_line)
    start = len(last) - len(last.lstrip())
    if start < end_col and last.strip():
        parts += ["  ..."] * (end_line > line + 1)
        parts.append(_marked(end_line, last, start, end_col))
    return "\n".join(parts)


def _marked(number: int, text: str, start: int, end: int) -> str:
    """One numbered line and its carets, both measured in terminal columns."""
    start = min(start, len(text))
    end = max(min(end, len(text)), start + 1)
    cells = _cells(text)
    low, high = _window(cells, start, end)
    before, after = "… " if low > 0 else "", " …" if high < len(cells) else ""
    pad = len(before) + sum(_width(cell) for cell in cells[low:start])
    marks = sum(_width(cell) for cell in cells[start : min(end, high)]) or 1
    prefix = f"{number:>5} | "
    shown = before + "".join(cells[low:high]) + after
    return f"{prefix}{shown}\n{' ' * (len(prefix) - 2)}| {' ' * pad}{'^' * marks}"


def _cells(text: str) -> list[str]:
    """What is shown for each character of a line."""
    cells, column = [], 0
    for character in text:
        cell = character
        if character == "\t":
            cell = " " * (_TAB - column % _TAB)
        elif character in _BIDI or unicodedata.category(character) in ("Cc", "Cs"):
            cell = "\ufffd"
        cells.append(cell)
        column += _width(cell)
    return cells


def _width(cell: str) -> int:
    """Terminal columns: two for East Asian wide characters and emoji, none for combining marks and joiners."""
    if len(cell) != 1:
        return len(cell)
    if unicodedata.category(cell) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(cell) in "WF" else 1


def _window(cells: list[str], start: int, end: int) -> tuple[int, int]:
    """The stretch of a long line to show: the span, or its beginning, then what fits on both sides."""
    if sum(map(_width, cells)) <= SNIPPET_COLUMNS:
        return 0, len(cells)
    low = high = min(start, len(cells))
    used = 0
    while high < min(end, len(cells)) and used + _width(cells[high]) <= SNIPPET_COLUMNS:
        used += _width(cells[high])
        high += 1
    while used < SNIPPET_COLUMNS and (low > 0 or high < len(cells)):
        if low > 0:
            low -= 1
            used += _width(cells[low])
        if high < len(cells) and used < SNIPPET_COLUMNS:
            used += _width(cells[high])
            high += 1
    return low, high


def _line(file: str, number: int) -> str:
    return linecache.getline(file, number).rstrip("\r\n")


def _utf16(text: str, col: int) -> int:
    """A column in characters as one in UTF-16 units: characters beyond the basic plane count twice."""
    return col + sum(ord(character) > 0xFFFF for character in text[:col])


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

    def __str__(self) -> str:
        lines = [self.found]
        if self.loc is not None:
            lines += _place("at", self.loc)
            lines += [_call(call) for call in reversed(self.loc.calls)]
        for note in self.notes:
            lines += [f"  note: {note.text}", *(_place("at", note.loc) if note.loc is not None else [])]
        lines += [f"  rule: {self.rule}"] if self.rule else []
        lines += [f"  fix: {self.fix}"] if self.fix else []
        return "\n".join(lines)

    def diagnostics(self) -> list[dict[str, object]]:
        """What an editor draws, as plain data: the error first, then its notes and the calls that led to it, innermost
        first. Lines count from 1 (0: no place is known), columns from 0 in UTF-16 units; `file` is the cell or path."""
        message = f"{self.found} (rule: {self.rule})" if self.rule else self.found
        found = [_diagnostic("error", message, self.fix, self.code, self.loc)]
        found += [_diagnostic("info", note.text, "", self.code, note.loc) for note in self.notes]
        calls = self.loc.calls if self.loc is not None else ()
        found += [
            _diagnostic("info", f"called from here: {self.found}", "", self.code, call) for call in reversed(calls)
        ]
        return found


def _place(word: str, loc: Loc) -> list[str]:
    snippet = caret(loc)
    return [f"  {word} {loc}", *([snippet] if snippet else [])]


def _call(call: Loc) -> str:
    text = "".join(_cells(call.source_line().strip()[: SNIPPET_COLUMNS - 20]))
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


class LanguageError(TileError):
    """The Python text of a kernel says something the language does not have."""

    code = "language"


class ShapeError(TileError):
    """Ranks, extents or dtypes that do not fit one another."""

    code = "shape"


class LayoutError(TileError):
    """Two annotations of the user contradict each other."""

    code = "layout"


class TargetError(TileError):
    """The target has no instruction or option for what was asked."""

    code = "target"


class ResourceError(TileError):
    """More threads, shared memory or registers than there are; both numbers are named."""

    code = "resource"


class LaunchError(TileError):
    """Arguments of a call that do not fit the kernel's parameters."""

    code = "launch"


class BuildError(TileError):
    """The device compiler refused the generated text; the place is mapped back to the user's line."""

    code = "build"


class SimulationError(TileError):
    """The simulator saw an undefined value, an index out of range, a race or a deadlock."""

    code = "simulation"


class OptionError(TileError):
    """An unknown option, a value out of range, or a malformed command line of a magic."""

    code = "option"


class MissingDependency(TileError):
    """An optional package or tool is not there; `fix` is the command that brings it."""

    code = "missing"


class InternalError(TileError):
    """An invariant of the compiler does not hold. Never the user's fault."""

    code = "internal"
