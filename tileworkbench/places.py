"""Where something stands in the user's text: spans, source lines with carets, and the place at which Python was."""

from __future__ import annotations

import linecache
import os
import sysconfig
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
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
        """The line of text it begins in, without its end; empty where the text cannot be had."""
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
    made = cells(text)
    low, high = _window(made, start, end)
    before, after = "… " if low > 0 else "", " …" if high < len(made) else ""
    pad = len(before) + sum(_width(cell) for cell in made[low:start])
    marks = sum(_width(cell) for cell in made[start : min(end, high)]) or 1
    prefix = f"{number:>5} | "
    shown = before + "".join(made[low:high]) + after
    return f"{prefix}{shown}\n{' ' * (len(prefix) - 2)}| {' ' * pad}{'^' * marks}"


def cells(text: str) -> list[str]:
    """What is shown for each character of a line: tabs become spaces, what could disturb a terminal is replaced."""
    shown, column = [], 0
    for character in text:
        cell = character
        if character == "\t":
            cell = " " * (_TAB - column % _TAB)
        elif character in _BIDI or unicodedata.category(character) in ("Cc", "Cs"):
            cell = "\ufffd"
        shown.append(cell)
        column += _width(cell)
    return shown


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


def to_characters(lines: list[str], line: int, byte: int) -> int:
    """A UTF-8 byte column of the parser as a character column."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return byte if text.isascii() else len(text.encode()[:byte].decode(errors="ignore"))


def frames(tb: TracebackType | None) -> Iterator[TracebackType]:
    """The frames of a traceback, outermost first."""
    while tb is not None:
        yield tb
        tb = tb.tb_next


def position(tb: TracebackType) -> Loc:
    """The span of text that was being executed in this frame."""
    code = tb.tb_frame.f_code
    line, end_line, col, end_col = list(code.co_positions())[tb.tb_lasti // 2]
    line = line or tb.tb_lineno
    end_line = end_line or line
    lines = linecache.getlines(code.co_filename)
    start, end = to_characters(lines, line, col or 0), to_characters(lines, end_line, end_col or 0)
    return Loc(code.co_filename, line, start, end_line, end)


def users_place(tb: TracebackType | None) -> Loc | None:
    """The innermost place of a traceback in text that is neither this package's nor an installed library's."""
    for frame in reversed(list(frames(tb))):
        if not is_installed(frame.tb_frame.f_code.co_filename):
            return position(frame)
    return None


def is_installed(file: str) -> bool:
    """Whether a file is this package's, Python's, or an installed library's."""
    return file.startswith(_INSTALLED)


_INSTALLED = ("<frozen", PACKAGE, *(sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")))
