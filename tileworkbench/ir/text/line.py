"""The lines that a kernel's text is made of."""

from __future__ import annotations

from typing import NamedTuple

from ...errors import Loc
from ..node import Node

STEP = "    "


class Line(NamedTuple):
    """One line: `text` without its indentation of `indent` steps, the user's place `loc` it came from, and the
    statement (None for the kernel's head and declarations)."""

    text: str
    loc: Loc | None = None
    indent: int = 0
    node: Node | None = None

    def __str__(self) -> str:
        return STEP * self.indent + self.text


def join(made: list[Line]) -> str:
    """The lines as one text that ends with a newline."""
    return "\n".join([STEP * line.indent + line.text for line in made]) + "\n"
