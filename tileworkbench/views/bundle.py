"""The MIME bundle of a document, kept within a budget so that notebooks stay small."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from .blocks import Block, Code, Diff, Picture, Table, Text
from .document import MIME, Document
from .html import to_html
from .text import to_text

Form = TypeVar("Form")
BUDGET = 100_000
# Tried in turn: all of it, then ever shorter blocks.
LENGTHS = (None, 2000, 500, 120, 40, 10)


def bundle(document: Document, budget: int = BUDGET) -> dict[str, Any]:
    """The record, static HTML and plain text of a document, together at most `budget` bytes of JSON. Cuts say so.

    The record gets half, since it alone can hold long texts compressed; HTML and text get a quarter each."""
    record = fit(document, lambda part: part.to_json(), budget // 2)
    return {
        MIME: record,
        "text/html": fit(document, to_html, budget // 4),
        "text/plain": fit(document, to_text, budget // 4),
    }


def fit(document: Document, form: Callable[[Document], Form], budget: int) -> Form:
    """The first of ever shorter forms that is within the budget."""
    for length in LENGTHS:
        made = form(document if length is None else shortened(document, length))
        if size(made) <= budget:
            return made
    return form(summary(document))


def size(value: object) -> int:
    """Bytes in a saved notebook, whose JSON keeps non-ASCII characters as they are."""
    return len(json.dumps(value, ensure_ascii=False).encode())


def shortened(document: Document, length: int) -> Document:
    """The document with at most `length` lines or rows in every block, and a note wherever something was cut."""
    sections = (
        replace(section, blocks=tuple(part for block in section.blocks for part in shortened_block(block, length)))
        for section in document.sections
    )
    return replace(document, sections=tuple(sections))


def shortened_block(block: Block, length: int) -> tuple[Block, ...]:
    """A block cut to `length` lines or rows, followed by a note of what is missing."""
    match block:
        case Code() if (total := len(block.text.splitlines())) > length:
            lines = "\n".join(block.text.splitlines()[:length])
            marks = tuple(mark for mark in block.marks if mark.line <= length)
            cut = replace(block, text=lines, marks=marks, origins=block.origins[:length])
            return cut, note(total, length, "lines")
        case Diff() if (total := diff_length(block)) > length:
            return (Text(f"[{block.caption or 'diff'}: {total} lines, left out to keep the notebook small]"),)
        case Table() if (total := len(block.rows)) > length:
            return replace(block, rows=block.rows[:length]), note(total, length, "rows")
        case Text() if len(block.text) > 200 * length:
            return (replace(block, text=block.text[: 200 * length] + " …"),)
        case Picture() if len(block.png) > 100 * length:
            return (Text(f"[picture left out to keep the notebook small: {block.alt}]"),)
    return (block,)


def diff_length(block: Diff) -> int:
    return sum(1 if isinstance(content, int) else len(content) for _, content in block.runs)


def note(total: int, length: int, unit: str) -> Text:
    return Text(f"[the first {length} of {total} {unit}; the rest was left out to keep the notebook small]")


def summary(document: Document) -> Document:
    """What is never left out: the title, the verdict, and as many diagnostics as a reader can take in."""
    most = 20
    verdict = replace(document.verdict, text=document.verdict.text[:1000])
    found = tuple(
        replace(each, message=each.message[:500], hint=each.hint[:500]) for each in document.diagnostics[:most]
    )
    return Document(document.title[:200], verdict, (), document.cell, found)
