"""The malformed kernels as data: `cases/*.txt`, grouped by theme.

    ## rule-id code: what the error's rule says (a regular expression for the whole text)
    ### a regular expression found in the message [target]
    the text, its guilty line marked by  # <-

A text with a `def` is a whole file or cell; one with `T.Kernel` at its left edge is the body of `k`; any other stands
inside `k`'s T.Kernel block. With a target in brackets the kernel is compiled for that one."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MARK = "# <-"
FOLDER = Path(__file__).parent / "cases"
IMPORTS = """import numpy as np
import tileworkbench as tw
import tileworkbench.language as T

"""
HEAD = """@T.prim_func
def k(
    A: T.Tensor((64, 64), "float32"),
    B: T.Tensor((64, 64), "float32"),
    H: T.Tensor((64, 64), "float16"),
    I: T.Tensor((64,), "int32"),
    n: T.int32,
    x: T.float32,
):
"""
LAUNCH = "    with T.Kernel(4, threads=128) as bx:\n"
FUTURE = "from __future__ import annotations\n"
DEFAULT_TARGET = "sm_90a"


@dataclass(frozen=True)
class Rule:
    """What must hold: its name, the error's code, and a pattern for the whole rule text."""

    name: str
    code: str
    text: str


@dataclass(frozen=True)
class Case:
    """One malformed text. `line` is the guilty one, counted from 1; `number` is its place in the collection."""

    rule: Rule
    message: str
    target: str
    text: str
    line: int
    theme: str
    number: int

    def __str__(self) -> str:
        return f"{self.theme}-{self.rule.name}-{self.number}"


@cache
def collection() -> tuple[Case, ...]:
    """All cases, in the order of their files."""
    made: list[Case] = []
    for path in sorted(FOLDER.glob("*.txt")):
        made.extend(_theme(path, len(made)))
    return tuple(made)


def _theme(path: Path, first: int) -> list[Case]:
    made: list[Case] = []
    for section in re.split(r"(?m)^## ", path.read_text(encoding="utf-8"))[1:]:
        head, *bodies = re.split(r"(?m)^### ", section)
        found = re.fullmatch(r"([\w-]+) (\w+): (.+)", head.strip())
        if found is None:
            raise ValueError(f"{path.name}: a rule is `name code: pattern`, not {head!r}")
        rule = Rule(*found.groups())
        for body in bodies:
            title, _, text = body.partition("\n")
            wanted = re.fullmatch(r"(.*?)(?: \[([\w/]+)\])?", title.strip())
            source = whole(text.rstrip() + "\n")
            marked = [n for n, line in enumerate(source.splitlines(), 1) if line.rstrip().endswith(MARK)]
            if wanted is None or len(marked) != 1:
                raise ValueError(f"{path.name}, {rule.name}: one line of a case is marked, here {marked}\n{text}")
            message, target = wanted.groups()
            number = first + len(made)
            made.append(Case(rule, message, target or DEFAULT_TARGET, source, marked[0], path.stem, number))
    return made


def whole(text: str) -> str:
    """The full text of a case."""
    future, text = ("", text) if not text.startswith(FUTURE) else (FUTURE, text.removeprefix(FUTURE))
    if re.search(r"(?m)^ *(async )?def |^import ", text):
        return future + IMPORTS + text
    if re.search(r"(?m)^(with )?T\.\w*Kernel\(|^return", text) or "T.Kernel" in text.split("\n")[0]:
        return IMPORTS + HEAD + textwrap.indent(text, "    ")
    return IMPORTS + HEAD + LAUNCH + textwrap.indent(text, "        ")
