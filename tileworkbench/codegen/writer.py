"""Collects lines of generated text with the user's place of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import Loc


class Writer:
    """Lines with their places; `loc` is the place that lines get until it changes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.locs: list[Loc | None] = []
        self.loc: Loc | None = None
        self._depth = 0

    def line(self, text: str) -> None:
        """Adds `text` at the current depth; a text of several lines keeps its own inner indentation."""
        for row in text.split("\n"):
            self.lines.append("  " * self._depth + row if row and not row.startswith("#") else row)
            self.locs.append(self.loc)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """`head {`, the indented lines written inside, and `tail`."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line(tail)

    @contextmanager
    def more(self, tail: str = "}") -> Iterator[None]:
        """Indented lines whose head has been written already, such as an `else`, and `tail`."""
        self._depth += 1
        yield
        self._depth -= 1
        self.line(tail)

    @contextmanager
    def at(self, loc: Loc | None) -> Iterator[None]:
        """Lines written inside belong to `loc`, or to the place around it when there is none."""
        saved, self.loc = self.loc, loc or self.loc
        yield
        self.loc = saved
