"""A document as static HTML that survives JupyterLab's sanitiser: no script, no style element, no svg, and neither id,
class, link nor data attribute. Everything of the document passes `escape`."""

from __future__ import annotations

import html
from collections.abc import Iterable

from .blocks import Bars, Block, Code, Diff, Facts, Picture, Table, Text, clean, shown
from .document import Diagnostic, Document, Section

SIGNS = {"good": "✓", "bad": "✗", "warn": "!", "plain": "·"}
# Hues of the Okabe–Ito palette, the same as in kit.js; a sign or a word always stands beside the colour.
HUES = {"good": "#009E73", "bad": "#D55E00", "warn": "#E69F00", "plain": "#767676"}
# Translucent, so that text keeps its contrast on light and dark grounds.
GROUNDS = {"+": "rgba(0,158,115,0.2)", "-": "rgba(213,94,0,0.2)"}
MONO = "font:12px/18px monospace;white-space:pre;max-height:432px;overflow:auto;margin:4px 0"
CELL = "padding:2px 12px 2px 0;vertical-align:top;"
LEFT = CELL + "text-align:left"  # JupyterLab aligns cells to the right


def escape(text: str) -> str:
    """Text as it may stand in an element or a quoted attribute; controls that hide text are spelled out."""
    return html.escape(clean(text), quote=True)


def to_html(document: Document) -> str:
    """The static form: the verdict, the diagnostics, then a fold for each section, the first one open."""
    verdict, hue = document.verdict, HUES[document.verdict.tone]
    parts = [
        f'<div style="border-left:4px solid {hue};padding:2px 0 2px 8px"><strong>{escape(document.title)}</strong><br>',
        f"{SIGNS[verdict.tone]} <strong>{escape(verdict.word)}</strong> {escape(verdict.text)}",
        *(diagnostic(found) for found in document.diagnostics),
        *(section(each, first=i == 0) for i, each in enumerate(document.sections)),
        "</div>",
    ]
    return "".join(parts)


def diagnostic(found: Diagnostic) -> str:
    hint = f"<br>fix: {escape(found.hint)}" if found.hint else ""
    return f"<div>{escape(found.heading())}: {escape(found.message)}{hint}</div>"


def section(each: Section, *, first: bool) -> str:
    body = "".join(block(part) for part in each.blocks)
    return f"<details{' open' if first else ''}><summary>{escape(each.title)}</summary>{body}</details>"


def block(part: Block) -> str:
    """One block; its kind decides."""
    match part:
        case Text():
            return f'<p style="white-space:pre-wrap">{escape(part.text)}</p>'
        case Code():
            return caption(part.caption) + code(part)
        case Diff():
            return caption(part.caption) + diff(part)
        case Table():
            return table(part)
        case Bars():
            return bars(part)
        case Picture():
            size = f'width="{part.width:d}" height="{part.height:d}"'
            return f'<img src="data:image/png;base64,{part.base64()}" alt="{escape(part.alt)}" {size}>'
        case Facts():
            rows = (
                f'<tr><td style="{LEFT}">{escape(k)}</td><td style="{LEFT}">{escape(shown(v))}</td></tr>'
                for k, v in part.facts
            )
            return f"<table>{''.join(rows)}</table>"


def caption(text: str) -> str:
    return f"<div>{escape(text)}</div>" if text else ""


def code(part: Code) -> str:
    """Lines of program text, each with its notes."""
    notes: dict[int, list[str]] = {}
    for mark in part.marks:
        notes.setdefault(mark.line, []).append(mark.text)
    lines = []
    for number, line in enumerate(clean(part.text).splitlines(), 1):
        note = (
            f'  <em style="color:{HUES["plain"]}">◂ {escape("; ".join(notes[number]))}</em>' if number in notes else ""
        )
        lines.append(escape(line) + note)
    return pre(lines)


def pre(lines: Iterable[str]) -> str:
    return f'<pre style="{MONO}">{chr(10).join(lines)}</pre>'


def diff(part: Diff) -> str:
    """Lines with a sign and, where changed, a ground."""
    lines: list[str] = []
    for sign, content in part.runs:
        if isinstance(content, int):
            lines.append(f"  · {content} unchanged lines")
        elif sign == "=":
            lines += [f"  {escape(line)}" for line in content]
        else:
            ground = GROUNDS[sign]
            lines += [f'<span style="background-color:{ground}">{sign} {escape(line)}</span>' for line in content]
    return pre(lines)


def table(part: Table) -> str:
    """A table whose columns of numbers are aligned to the right."""
    aligned = ["right" if right else "left" for right in part.numeric()]

    def row(tag: str, cells: Iterable[str]) -> str:
        styled = zip(cells, aligned, strict=True)
        return "<tr>" + "".join(f'<{tag} style="{CELL}text-align:{a}">{escape(c)}</{tag}>' for c, a in styled) + "</tr>"

    body = "".join(row("td", map(shown, cells)) for cells in part.rows)
    title = f"<caption>{escape(part.caption)}</caption>" if part.caption else ""
    return f"<table>{title}<thead>{row('th', part.columns)}</thead><tbody>{body}</tbody></table>"


def bars(part: Bars) -> str:
    """A table with a coloured rule in each row."""
    drawn = part.drawn()
    longest = max((bar["value"] or 0.0 for bar in drawn), default=0.0) or 1.0
    rows = []
    for bar in drawn:
        width, hue = 200.0 * (bar["value"] or 0.0) / longest, HUES[bar["tone"]]
        rule = f'<div style="width:{width:.0f}px;height:12px;background-color:{hue}"></div>'
        cells = escape(bar["label"]), rule, escape(bar["text"])
        rows.append("<tr>" + "".join(f'<td style="{LEFT}">{cell}</td>' for cell in cells) + "</tr>")
    title = f"<caption>{escape(part.caption)}</caption>" if part.caption else ""
    return f"<table>{title}<tbody>{''.join(rows)}</tbody></table>"
