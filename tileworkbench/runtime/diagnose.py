"""A device compiler's error messages, brought back to the user's line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..codegen.source import Source
from ..errors import BuildError, Loc

MOST_NOTES = 5  # one mistake often brings a hundred errors
_FRONT = re.compile(r"^([^\s(][^(\n]*)\((\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (.*)$", re.MULTILINE)
_CLANG = re.compile(r"^([^\s:][^:\n]*):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
_PTXAS = re.compile(r"^ptxas [^\n]*?line (\d+); (?:error|fatal) *: (.*)$", re.MULTILINE)
_PTX_LOC = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)\s")


@dataclass(frozen=True)
class Diagnostic:
    """One error: a line of the generated text (0: unknown, or inside a header) and the message."""

    line: int
    message: str


def front_end(log: str, file: str) -> tuple[Diagnostic, ...]:
    """Errors of NVRTC's or clang's front end; `file` is the name the generated text was compiled under."""
    hits = sorted([*_FRONT.finditer(log), *_CLANG.finditer(log)], key=lambda m: m.start())
    return tuple(Diagnostic(int(m[2]) if m[1] == file else 0, m[3]) for m in hits)


def assembler(log: str, ptx: str) -> tuple[Diagnostic, ...]:
    """Errors of ptxas, whose lines count in the PTX; the PTX's own line marks lead back to the generated text."""
    return tuple(Diagnostic(_line_of_ptx(ptx, int(m[1])), f"ptxas: {m[2]}") for m in _PTXAS.finditer(log))


def _line_of_ptx(ptx: str, number: int) -> int:
    for line in reversed(ptx.splitlines()[:number]):
        if mark := _PTX_LOC.match(line):
            return int(mark[1])
    return 0


def place(source: Source, line: int) -> Loc | None:
    """The user's place of a generated line. A line of ours without one takes the nearest place above it."""
    for i in range(min(line, len(source.line_map)) - 1, -1, -1):
        if source.line_map[i] is not None:
            return source.line_map[i]
    return None


class Refused(BuildError):
    """A BuildError with all the compiler said: its errors in order, and the whole log."""

    def __init__(self, found: str, *, errors: tuple[Diagnostic, ...], log: str, **words: Any) -> None:
        super().__init__(found, **words)
        self.errors, self.log = errors, log

    @property
    def line(self) -> int:
        """The generated line of the first error; 0 where it is unknown."""
        return self.errors[0].line if self.errors else 0


def build_error(source: Source, found: tuple[Diagnostic, ...], log: str, status: str) -> Refused:
    """The first error at its place, the next few as notes."""
    first = found[0] if found else Diagnostic(0, next(iter(log.strip().splitlines()), status))
    lines = source.text.splitlines()
    text = f"\n  {_line(source, first.line)}: {lines[first.line - 1].strip()}" if 0 < first.line <= len(lines) else ""
    own = _brought(source, first.line)
    error = Refused(
        f"the device compiler refused kernel {source.entry!r} for {source.arch}: {first.message}{text}",
        rule="text that a kernel brings is code that the device compiler takes"
        if own
        else "generated text must compile",
        fix="correct this line of the text"
        if own
        else "look at the generated text of this line; if the kernel is right, this is a fault of the compiler",
        loc=place(source, first.line),
        errors=found,
        log=log,
    )
    for other in found[1:MOST_NOTES]:
        error = error.note(f"{_line(source, other.line)}: {other.message}", place(source, other.line))
    return error


def _brought(source: Source, line: int) -> int:
    """A line's number in the user's own text that it belongs to; 0 for generated ones."""
    return next((line - first + 1 for first, last in source.brought if first <= line <= last), 0)


def _line(source: Source, line: int) -> str:
    """A line by its number, in the user's own text or in what was generated."""
    own = _brought(source, line)
    return f"line {own} of the kernel's own text" if own else f"generated line {line}"
