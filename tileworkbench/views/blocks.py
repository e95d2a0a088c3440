"""The blocks that a document is made of. Each gives its JSON form; all text in it has passed `clean`."""

from __future__ import annotations

import base64
import difflib
import gzip
import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ..errors import InternalError

Tone = Literal["plain", "good", "warn", "bad"]
Cell = str | int | float | None
Json = dict[str, Any]
# Shorter texts gain nothing from compression and stay readable in the saved notebook.
COMPRESS_FROM = 4000
# Controls that reorder or hide text, and halves of surrogate pairs, which no encoding can write.
UNSAFE = re.compile("[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` with invisible controls spelled out, so that what is read is what is there."""
    return UNSAFE.sub(lambda found: f"\u27e8{ord(found[0]):04X}\u27e9", text)


def shown(value: Cell) -> str:
    """A table cell as text: floats with four significant digits, None as a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return clean(str(value))


@dataclass(frozen=True)
class Text:
    """A paragraph; line breaks are kept."""

    text: str
    tone: Tone = "plain"

    def to_json(self) -> Json:
        return {"kind": "text", "text": clean(self.text), "tone": self.tone}


@dataclass(frozen=True)
class Mark:
    """A note beside one line of a code block; lines count from 1."""

    line: int
    text: str
    tone: Tone = "plain"

    def to_json(self) -> Json:
        return {"line": self.line, "text": clean(self.text), "tone": self.tone}


@dataclass(frozen=True)
class Code:
    """Program text. `origins[i]` is the line of the cell that line i + 1 came from, 0 for none; it may be empty."""

    language: str
    text: str
    caption: str = ""
    marks: tuple[Mark, ...] = ()
    origins: tuple[int, ...] = ()

    def to_json(self) -> Json:
        text = clean(self.text)
        record: Json = {"kind": "code", "language": self.language, "caption": clean(self.caption)}
        if len(text) < COMPRESS_FROM:
            record["text"] = text
        else:
            # No time stamp in the header: the same text gives the same record.
            packed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
            record["gzip"] = base64.b64encode(packed).decode("ascii")
        record["marks"] = [mark.to_json() for mark in self.marks]
        record["origins"] = list(self.origins)
        return record


@dataclass(frozen=True)
class Diff:
    """Two texts by lines. What is drawn is computed here; unchanged stretches beyond `context` fold to a count."""

    before: str
    after: str
    caption: str = ""
    context: int = 3

    @cached_property
    def runs(self) -> list[tuple[str, list[str]] | tuple[Literal["~"], int]]:
        """("=" | "-" | "+", lines) or ("~", number of folded lines), in order."""
        old, new = clean(self.before).splitlines(), clean(self.after).splitlines()
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        found: list[tuple[str, list[str]] | tuple[Literal["~"], int]] = []
        for op, i, i_end, j, j_end in matcher.get_opcodes():
            if op == "equal":
                found += folded(old[i:i_end], self.context, opens=i == 0, closes=i_end == len(old))
                continue
            found += [("-", old[i:i_end])] if i < i_end else []
            found += [("+", new[j:j_end])] if j < j_end else []
        return found

    def to_json(self) -> Json:
        return {"kind": "diff", "caption": clean(self.caption), "runs": [list(run) for run in self.runs]}


def folded(
    lines: list[str], context: int, *, opens: bool, closes: bool
) -> list[tuple[str, list[str]] | tuple[Literal["~"], int]]:
    """An unchanged stretch with its middle folded; a stretch that opens or closes the text has one side only."""
    head = 0 if opens else context
    tail = 0 if closes else context
    hidden = len(lines) - head - tail
    if hidden < 2:  # a fold of one line would save nothing
        return [("=", lines)] if lines else []
    parts: list[tuple[str, list[str]] | tuple[Literal["~"], int]] = [("=", lines[:head])] if head else []
    parts.append(("~", hidden))
    return parts + ([("=", lines[len(lines) - tail :])] if tail else [])


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers; columns that hold numbers alone are aligned to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise InternalError(f"a table of {len(self.columns)} columns has a row of another length")

    def numeric(self) -> list[bool]:
        def number(value: Cell) -> bool:
            return value is None or (isinstance(value, int | float) and not isinstance(value, bool))

        return [bool(self.rows) and all(number(row[i]) for row in self.rows) for i in range(len(self.columns))]

    def to_json(self) -> Json:
        return {
            "kind": "table",
            "caption": clean(self.caption),
            "columns": [clean(column) for column in self.columns],
            "numeric": self.numeric(),
            "rows": [[shown(value) for value in row] for row in self.rows],
        }


@dataclass(frozen=True)
class Bar:
    """One bar. `text` is printed beside it (value and unit if empty); `value` is None where nothing was measured."""

    label: str
    value: float | None
    text: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True)
class Bars:
    """Horizontal bars on one scale from zero."""

    bars: tuple[Bar, ...]
    unit: str = ""
    caption: str = ""

    def to_json(self) -> Json:
        return {"kind": "bars", "caption": clean(self.caption), "unit": clean(self.unit), "bars": self.drawn()}

    def drawn(self) -> list[Json]:
        return [self.bar(bar) for bar in self.bars]

    def bar(self, bar: Bar) -> Json:
        # JSON has no NaN or infinity; such a bar keeps its text and loses its length.
        value = bar.value if bar.value is not None and math.isfinite(bar.value) and bar.value >= 0 else None
        text = bar.text or f"{shown(bar.value)} {self.unit}".strip()
        return {"label": clean(bar.label), "value": value, "text": clean(text), "tone": bar.tone}


@dataclass(frozen=True)
class Picture:
    """A PNG of `width` × `height` CSS pixels with the text that stands for it."""

    png: bytes
    alt: str
    width: int
    height: int

    def __post_init__(self) -> None:
        if not self.png.startswith(b"\x89PNG\r\n\x1a\n") or not self.alt:
            raise InternalError("a picture needs PNG bytes and a text that stands for it")

    def base64(self) -> str:
        return base64.b64encode(self.png).decode("ascii")

    def to_json(self) -> Json:
        size = {"width": self.width, "height": self.height}
        return {"kind": "picture", "png": self.base64(), "alt": clean(self.alt), **size}


@dataclass(frozen=True)
class Facts:
    """Names and values, one a line."""

    facts: tuple[tuple[str, Cell], ...]

    def to_json(self) -> Json:
        return {"kind": "facts", "facts": [[clean(name), shown(value)] for name, value in self.facts]}


Block = Text | Code | Diff | Table | Bars | Picture | Facts
