"""The record that every result is shown from: a title, one verdict, diagnostics, and sections of plain blocks.

It is data alone (no markup, no code), the same for JupyterLab, saved HTML and a terminal. `document.schema.json` beside
this file is its JSON form; `version` grows when that form changes, and readers refuse versions newer than their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

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
    """A message about a span of the cell, or of another `file`. Lines count from 1 with the magic's line (0: no place
    is known), columns from 0 in UTF-16 units, as editors count."""

    line: int
    col: int
    end_line: int
    end_col: int
    message: str
    severity: Severity = "error"
    hint: str = ""
    code: str = ""
    file: str = ""

    @classmethod
    def of(cls, error: TileError) -> tuple[Diagnostic, ...]:
        """The error first, then its notes and the calls that led to it."""
        return tuple(cls(**cast(Json, found)) for found in error.diagnostics())

    def heading(self) -> str:
        """Severity and place in words, e.g. "line 3: error"."""
        return f"line {self.line}: {self.severity}" if self.line else self.severity

    def to_json(self) -> Json:
        place = {"line": self.line, "col": self.col, "end_line": self.end_line, "end_col": self.end_col}
        words = {"message": clean(self.message), "hint": clean(self.hint), "code": self.code}
        return {"file": clean(self.file), **place, "severity": self.severity, **words}


@dataclass(frozen=True)
class Document:
    """Everything that one result shows."""

    title: str
    verdict: Verdict
    sections: tuple[Section, ...] = ()
    cell: CellSource | None = None
    diagnostics: tuple[Diagnostic, ...] = ()

    def to_json(self) -> Json:
        """The record as `document.schema.json` describes it, texts cleaned and sizes capped."""
        return {
            "version": VERSION,
            "title": clean(self.title),
            "verdict": self.verdict.to_json(),
            "cell": self.cell.to_json() if self.cell else None,
            "diagnostics": [diagnostic.to_json() for diagnostic in self.diagnostics],
            "sections": [section.to_json() for section in self.sections],
        }
