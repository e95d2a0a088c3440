"""Documents for the tests: one with every kind of block, and one made of attempts to be more than text."""

from __future__ import annotations

import numpy as np

from tileworkbench.views.blocks import Bar, Bars, Code, Diff, Facts, Mark, Picture, Table, Text
from tileworkbench.views.document import CellSource, Diagnostic, Document, Section, Verdict
from tileworkbench.views.picture import indexed_png

PNG = indexed_png(np.arange(12).reshape(3, 4) % 3, [(255, 255, 255), (0, 114, 178), (213, 94, 0)], scale=4)
PAYLOADS = (
    "<img src=x onerror=window.pwned=1>",
    "</script><script>window.pwned=1</script>",
    "<!--<script>",
    '"><button data-commandlinker-command="application:logout" data-commandlinker-args="{}">x</button>',
    "' onmouseover='window.pwned=1",
    "javascript:window.pwned=1",
    "<svg onload=window.pwned=1>",
    "<form action=https://example.invalid><input name=body></form>",
    "\u2028window.pwned=1\u2029",
    "\u202egnp.js",
    "\ud800",
    "{{constructor.constructor('window.pwned=1')()}}",
)


def full() -> Document:
    long = "\n".join(f"line {i} of a long text" for i in range(2000))
    blocks = (
        Text("two\nlines", "good"),
        Facts((("registers", 128), ("shared memory", "48 KiB"), ("occupancy", None))),
        Table(("pass", "seconds"), (("lower", 0.00125), ("plan", 2)), "passes"),
        Bars((Bar("ours", 2.0, "2 ms", "good"), Bar("peer", 4.0), Bar("broken", float("nan"))), "ms", "time"),
        Picture(PNG, "a grid of three colours", 16, 12),
    )
    code = (
        Code("cuda", "int a;\nint b;", "source", (Mark(2, "spills", "warn"),), (7, 8)),
        Code("sass", long, "SASS"),
        Diff("\n".join("abcdefghij"), "\n".join("abcdeXghij"), "one line changed"),
    )
    sections = Section("summary", "Summary", blocks), Section("code", "Code", code)
    found = Diagnostic(3, 4, 3, 9, "a name before its definition", "warning", "define it", "language")
    return Document(
        "add", Verdict("right", "on 5 shapes", "good"), sections, CellSource("Cell In[3]", "0" * 64), (found,)
    )


def hostile() -> Document:
    lines = "\n".join(PAYLOADS)
    blocks = (
        *(Text(each) for each in PAYLOADS),
        Facts(tuple((each, each) for each in PAYLOADS)),
        Table(PAYLOADS, (PAYLOADS,), PAYLOADS[0]),
        Bars(tuple(Bar(each, 1.0, each) for each in PAYLOADS), PAYLOADS[0], PAYLOADS[1]),
        Picture(PNG, "".join(PAYLOADS), 16, 12),
        Code(PAYLOADS[3], lines, PAYLOADS[1], (Mark(1, PAYLOADS[0]),)),
        Diff(lines, lines.replace("pwned", "owned"), PAYLOADS[1]),
    )
    sections = tuple(Section(each, each, blocks) for each in PAYLOADS[:4])
    found = tuple(Diagnostic(1, 0, 1, 1, each, "error", each, "language") for each in PAYLOADS)
    return Document(lines, Verdict(PAYLOADS[0], PAYLOADS[1], "bad"), sections, CellSource(PAYLOADS[3], "f" * 64), found)
