"""A document as plain text, for terminals and for readers that show nothing else."""

from __future__ import annotations

from .blocks import Bars, Block, Code, Diff, Facts, Picture, Table, Text, clean, shown
from .document import Document, Section

SIGNS = {"good": "✓", "bad": "✗", "warn": "!", "plain": "·"}
BAR = 30


def to_text(document: Document) -> str:
    """The whole document, without colours or control codes."""
    verdict = document.verdict
    lines = [clean(document.title), f"{SIGNS[verdict.tone]} {clean(verdict.word)}: {clean(verdict.text)}"]
    for found in document.diagnostics:
        lines.append(f"{found.heading()}: {clean(found.message)}")
        lines += [f"  fix: {clean(found.hint)}"] if found.hint else []
    return "\n".join([*lines, *(line for section in document.sections for line in section_lines(section))])


def section_lines(section: Section) -> list[str]:
    """A heading and the lines of its blocks."""
    title = clean(section.title)
    lines = ["", title, "─" * len(title)]
    for block in section.blocks:
        lines += block_lines(block)
    return lines


def block_lines(block: Block) -> list[str]:
    """One block; its kind decides."""
    match block:
        case Text():
            return clean(block.text).splitlines()
        case Code():
            return code_lines(block)
        case Diff():
            return caption(block.caption) + diff_lines(block)
        case Table():
            return caption(block.caption) + table_lines(block)
        case Bars():
            return caption(block.caption) + bar_lines(block)
        case Picture():
            return [f"[picture: {clean(block.alt)}]"]
        case Facts():
            width = max((len(clean(name)) for name, _ in block.facts), default=0)
            return [f"{clean(name):<{width}}  {shown(value)}" for name, value in block.facts]


def caption(text: str) -> list[str]:
    return [f"{clean(text)}:"] if text else []


def code_lines(block: Code) -> list[str]:
    """Indented program text, notes behind their lines."""
    notes: dict[int, str] = {}
    for mark in block.marks:
        notes[mark.line] = "; ".join(filter(None, (notes.get(mark.line, ""), clean(mark.text))))
    lines = enumerate(clean(block.text).splitlines(), 1)
    return caption(block.caption) + [f"  {line}" + (f"  ◂ {notes[i]}" if i in notes else "") for i, line in lines]


def diff_lines(block: Diff) -> list[str]:
    """Lines with their sign in the first column."""
    lines: list[str] = []
    for sign, content in block.runs:
        if isinstance(content, int):
            lines.append(f"  · {content} unchanged lines")
        else:
            lines += [f"{' ' if sign == '=' else sign} {line}" for line in content]
    return lines


def table_lines(block: Table) -> list[str]:
    """Columns padded to their widest cell."""
    rows = [[clean(column) for column in block.columns], *([shown(value) for value in row] for row in block.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(block.columns))]
    right = block.numeric()

    def line(row: list[str]) -> str:
        cells = (f"{c:>{w}}" if r else f"{c:<{w}}" for c, w, r in zip(row, widths, right, strict=True))
        return "  " + "  ".join(cells).rstrip()

    return [line(rows[0]), "  " + "  ".join("─" * width for width in widths), *map(line, rows[1:])]


def bar_lines(block: Bars) -> list[str]:
    """One line a bar, on one scale."""
    drawn = block.drawn()
    longest = max((bar["value"] or 0.0 for bar in drawn), default=0.0) or 1.0
    width = max((len(bar["label"]) for bar in drawn), default=0)
    return [
        f"  {bar['label']:<{width}}  {'█' * round(BAR * (bar['value'] or 0.0) / longest):<{BAR}}  {bar['text']}"
        for bar in drawn
    ]
