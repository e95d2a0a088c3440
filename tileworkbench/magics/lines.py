"""%tile: the kernels of this session as a list, one of them, two beside one another."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from ..errors import OptionError, TileError
from ..views.blocks import Cell, Diff, Table, Text
from ..views.document import Document, Section, Verdict
from ..views.result import Result, Shown
from .registry import Registry

WORDS = {"list": 0, "show": 1, "compare": 2, "clear": 0}
HELP = "%tile list | show NAME | compare A B | clear"


def tile(line: str, registry: Registry) -> Result | Shown | str:
    """Runs a %tile line; OptionError for a word it does not know."""
    word, *names = line.split() or ["list"]
    if word in ("--help", "help", "-h"):
        return HELP
    if word not in WORDS:
        near = difflib.get_close_matches(word, WORDS, n=1, cutoff=0.4)
        raise OptionError(f"%tile {word}", rule=HELP, fix=f"did you mean %tile {near[0]}?" if near else "%tile list")
    if len(names) != WORDS[word]:
        count = f"{len(names)} name{'s' * (len(names) != 1)}"
        raise OptionError(f"%tile {word} with {count}", rule=f"it takes {WORDS[word]}", fix=HELP)
    if word == "clear":
        return f"forgot {registry.clear()} kernels; names in the notebook stay bound"
    if word == "show":
        return registry.find(names[0])
    if word == "compare":
        return comparison(names[0], registry.find(names[0]), names[1], registry.find(names[1]))
    return listing(registry)


def listing(registry: Registry) -> Shown:
    """One row a kernel."""
    rows = tuple(row(name, result) for name, result in registry.results.items())
    columns = ("name", "target", "checked", "registers", "shared bytes", "built in")
    count = f"{len(rows)} kernel{'s' * (len(rows) != 1)}"
    block = Table(columns, rows) if rows else Text("No %%tilekernel cell has run yet.")
    section = Section("kernels", "Kernels", (block,))
    return Shown(Document("kernels of this session", Verdict(count, "newest last"), (section,)))


def row(name: str, result: Result) -> tuple[Cell, ...]:
    """One kernel of the list."""
    kernel = result.kernel
    checked = "–" if result.check is None else "right" if result.check.ok else "wrong"
    return (
        name,
        str(kernel.target),
        checked,
        figure(lambda: kernel.registers),
        kernel.shared_bytes,
        f"{kernel.timing.total * 1e3:.0f} ms",
    )


def figure(read: Callable[[], Cell]) -> Cell:
    """A figure, None where this target or machine has none."""
    try:
        return read()
    except TileError:
        return None


def comparison(a: str, left: Result, b: str, right: Result) -> Shown:
    """Figures beside one another, and the difference of the lowered programs."""
    names = (a, b) if a != b else (f"{a} (1)", f"{b} (2)")
    figures: dict[str, Callable[[Any], Cell]] = {
        "target": lambda k: str(k.target),
        "registers": lambda k: figure(lambda: k.registers),
        "spilled bytes": lambda k: figure(lambda: k.spills),
        "shared bytes": lambda k: k.shared_bytes,
        "occupancy": lambda k: figure(lambda: str(k.occupancy)),
    }
    rows: list[tuple[Cell, ...]] = [(n, f(left.kernel), f(right.kernel)) for n, f in figures.items()]
    if left.bench is not None and right.bench is not None:
        rows.append(("ms a call", left.bench.ms, right.bench.ms))
    blocks = (Table(("figure", *names), tuple(rows)), Diff(left.kernel.source, right.kernel.source, "Their text"))
    same = "the same text" if left.kernel.source == right.kernel.source else "texts differ"
    return Shown(Document(f"{a} and {b}", Verdict("compared", same), (Section("compare", "Compare", blocks),)))
