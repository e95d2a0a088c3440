"""Where something stands in the user's text, and every error that a user can meet.

A user mistake always ends in a `TileError`: what was found, the rule, the fix, and the place with a caret.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loc:
    """A span of the user's text: `file` is a path or a registered cell name; lines count from 1, columns from 0 in
    characters (not UTF-8 bytes). `calls` is the chain of macro or helper calls that led here, outermost first."""

    file: str
    line: int
    col: int = 0
    end_line: int = 0
    end_col: int = 0
    calls: tuple[Loc, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col + 1}"

    def source_line(self) -> str:
        return linecache.getline(self.file, self.line).rstrip("\n")


def caret(loc: Loc) -> str:
    """The source line of `loc` with carets under the span; empty when the text cannot be had."""
    text = loc.source_line()
    if not text:
        return ""
    end = loc.end_col if loc.end_line in (0, loc.line) and loc.end_col > loc.col else loc.col + 1
    end = max(min(end, len(text)), loc.col + 1)
    # Tabs are kept in the pad so that the caret lands under its token whatever the tab width.
    pad = "".join("\t" if c == "\t" else " " for c in text[: loc.col])
    prefix = f"{loc.line:>5} | "
    return f"{prefix}{text}\n{' ' * (len(prefix) - 2)}| {pad}{'^' * (end - loc.col)}"


class TileError(Exception):
    """The root of the tree. `found` says what is there, `rule` what must hold, `fix` what to write instead."""

    code = "tile"

    def __init__(self, found: str, *, rule: str = "", fix: str = "", loc: Loc | None = None) -> None:
        self.found, self.rule, self.fix, self.loc = found, rule, fix, loc
        super().__init__(found)

    def at(self, loc: Loc | None) -> TileError:
        """This error with a place, unless it has one already."""
        if self.loc is None:
            self.loc = loc
        return self

    def __str__(self) -> str:
        lines = [self.found]
        if self.loc is not None:
            lines += [f"  at {self.loc}", *([caret(self.loc)] if caret(self.loc) else [])]
            lines += [f"  called from {call}" for call in reversed(self.loc.calls)]
        lines += [f"  rule: {self.rule}"] if self.rule else []
        lines += [f"  fix: {self.fix}"] if self.fix else []
        return "\n".join(lines)


class LanguageError(TileError):
    """The Python text of a kernel says something the language does not have."""

    code = "language"


class ShapeError(TileError):
    """Ranks, extents or dtypes that do not fit one another."""

    code = "shape"


class LayoutError(TileError):
    """Two annotations of the user contradict each other."""

    code = "layout"


class TargetError(TileError):
    """The target has no instruction or option for what was asked."""

    code = "target"


class ResourceError(TileError):
    """More threads, shared memory or registers than there are; both numbers are named."""

    code = "resource"


class LaunchError(TileError):
    """Arguments of a call that do not fit the kernel's parameters."""

    code = "launch"


class BuildError(TileError):
    """The device compiler refused the generated text; the place is mapped back to the user's line."""

    code = "build"


class SimulationError(TileError):
    """The simulator saw an undefined value, an index out of range, a race or a deadlock."""

    code = "simulation"


class OptionError(TileError):
    """An unknown option, a value out of range, or a malformed command line of a magic."""

    code = "option"


class MissingDependency(TileError):
    """An optional package or tool is not there; `fix` is the command that brings it."""

    code = "missing"


class InternalError(TileError):
    """An invariant of the compiler does not hold. Never the user's fault."""

    code = "internal"
