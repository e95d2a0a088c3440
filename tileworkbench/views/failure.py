"""A mistake as a document: what an editor can mark without a kernel, and what a reader needs to mend it."""

from __future__ import annotations

from ..errors import TileError
from .blocks import Block, Code, Text
from .document import CellSource, Diagnostic, Document, Section, Verdict

WORDS = {
    "language": "not a kernel",
    "shape": "shapes do not fit",
    "layout": "layouts contradict",
    "target": "not on this target",
    "resource": "too large",
    "launch": "wrong arguments",
    "argument": "wrong arguments",
    "assumption": "not as the kernel says",
    "build": "not built",
    "simulation": "wrong at run time",
    "unsimulated": "runs on a card only",
    "option": "unknown option",
    "missing": "something is missing",
    "internal": "a fault of ours",
}


def failure_document(error: TileError, title: str, cell: CellSource | None = None) -> Document:
    """The error's diagnostics with the text around them."""
    blocks: list[Block] = [Code("text", str(error))]
    log = getattr(error, "log", "")
    if log:
        blocks.append(Code("text", log, "What the device compiler said"))
    if error.code == "internal":
        blocks.append(Text("This is not your mistake: please report it with the cell.", "warn"))
    verdict = Verdict(WORDS.get(error.code, "refused"), error.found, "bad")
    return Document(title, verdict, (Section("why", "Why", tuple(blocks)),), cell, Diagnostic.of(error))
