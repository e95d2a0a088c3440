"""The record that every result is shown from: a title, one verdict, diagnostics, and sections of plain blocks.

It is data alone (no markup, no code), the same for JupyterLab, saved HTML and a terminal. `document.schema.json` beside
this file is its JSON form; `version` grows when that form changes, and readers refuse versions newer than their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import TileError
from .blocks import Block, Json, Tone, clean

MIME = "application/vnd.tileworkbench.v1+json"
VERSION = 1
Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Section:
    """A tab: `id` is a stable name for tests and scripts, `title` what is read."""

    id: str
    title: str
    blocks: tuple[Block, ...]

    def to_json(self) -> Json:
        return {"id": self.id, "title": clean(self.title), "blocks": [block.to_json() for block in self.blocks]}


@dataclass(frozen=True)
class Verdict:
    """The sentence above everything: a word ("right", "wrong", "refused", …), the rest of it, and its tone."""

    word: str
    text: str
    tone: Tone = "plain"

    def to_json(self) -> Json:
        return {"word": clean(self.word), "text": clean(self.text), "tone": self.tone}


@dataclass(frozen=True)
class CellSource:
    """The notebook cell that a record speaks of; `sha256` of its text tells an editor whether it still is that text."""

    name: str
    sha256: str

    def to_json(self) -> Json:
        return {"name": clean(self.name), "sha256": self.sha256}


@dataclass(frozen=True)
class Diagnostic:
    """A message about a span of the cell. Lines count from 1 with the magic's line, columns from 0 in UTF-16 units."""

    line: int
    col: int
    end_line: int
    end_col: int
    message: str
    severity: Severity = "error"
    hint: str = ""
    code: str = ""

    @classmethod
    def of(cls, error: TileError, severity: Severity = "error") -> Diagnostic:
        """What an editor marks for an error; without a place it is the first line."""
        loc = error.loc
        message = error.found + (f" (rule: {error.rule})" if error.rule else "")
        if loc is None:
            return cls(1, 0, 1, 0, message, severity, error.fix, error.code)
        line = loc.source_line()
        end_line = max(loc.end_line, loc.line)
        # Only the first line's text is at hand; a span over several lines keeps its last column as it is.
        end = max(loc.end_col, loc.col + 1) if end_line == loc.line else loc.end_col
        end_col = utf16(line, end) if end_line == loc.line else end
        return cls(loc.line, utf16(line, loc.col), end_line, end_col, message, severity, error.fix, error.code)

    def to_json(self) -> Json:
        place = {"line": self.line, "col": self.col, "end_line": self.end_line, "end_col": self.end_col}
        words = {"message": clean(self.message), "hint": clean(self.hint), "code": self.code}
        return {**place, "severity": self.severity, **words}


def utf16(line: str, col: int) -> int:
    """Editors count UTF-16 units: characters beyond U+FFFF count twice. Columns past the text are kept as they are."""
    return col + sum(1 for char in line[:col] if ord(char) > 0xFFFF)


@dataclass(frozen=True)
class Document:
    """Everything that one result shows."""

    title: str
    verdict: Verdict
    sections: tuple[Section, ...] = ()
    cell: CellSource | None = None
    diagnostics: tuple[Diagnostic, ...] = ()

    def to_json(self) -> Json:
        return {
            "version": VERSION,
            "title": clean(self.title),
            "verdict": self.verdict.to_json(),
            "cell": self.cell.to_json() if self.cell else None,
            "diagnostics": [diagnostic.to_json() for diagnostic in self.diagnostics],
            "sections": [section.to_json() for section in self.sections],
        }
