"""How the machine reports: every fault is a SimulationError with block, warp and lanes, the rule and the place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Loc, SimulationError
from ...ir.instr import Addr, Bar, Desc, Instr, Reg
from ...ir.stmt import Stmt, Store

if TYPE_CHECKING:
    from .warp import Warp


class Fault(SimulationError):
    """A fault of a thread kernel. `kind` is a stable word for tests and views; `other` is the place of the
    second statement of a race, which a note of the error shows too."""

    def __init__(self, found: str, kind: str, *, rule: str, fix: str, loc: Loc | None, other: Loc | None) -> None:
        super().__init__(found, rule=rule, fix=fix, loc=loc)
        self.kind, self.other = kind, other


def fault(
    w: Warp | None, kind: str, found: str, *, rule: str = "", fix: str = "", lanes: Any = None,
    at: Stmt | None = None, other: Stmt | None = None,
) -> Fault:  # fmt: skip
    """The fault of warp `w` at its current statement (or `at`). `lanes`: a bool mask or lane numbers it concerns."""
    where = ""
    if w is not None:
        at = at or w.at
        where = f" ({threads_text(w, lanes)} of block {w.block.text})"
    place = at.loc if at is not None else None
    found = f"{describe(at)}: {found}{where}" if at is not None else f"{found}{where}"
    made = Fault(found, kind, rule=rule, fix=fix, loc=place, other=other.loc if other is not None else None)
    if other is not None:
        made.note(f"the other statement: {describe(other)}", other.loc)
    return made


def threads_text(w: Warp, lanes: Any = None) -> str:
    """The threads that `lanes` (mask or numbers) of a warp are, in words."""
    name = f"warp {w.index}" + (f" of role {w.role!r}" if w.role else "")
    if lanes is None:
        return name
    numbers = np.flatnonzero(lanes) if np.asarray(lanes).dtype == bool else np.atleast_1d(np.asarray(lanes))
    if numbers.size == 0:
        return name
    threads = w.threads[numbers]
    if threads.size == 1:
        return f"thread {threads[0]}, {name}"
    return (
        f"threads {threads[0]}…{threads[-1]}, {name}"
        if threads.size > 2
        else f"threads {threads[0]} and {threads[1]}, {name}"
    )


def describe(stmt: Stmt | None) -> str:
    """A statement in one phrase: its row and what it touches."""
    if stmt is None:
        return "kernel"
    if isinstance(stmt, Store):
        return f"write of {stmt.buffer.name}"
    name = type(stmt).__name__
    if not isinstance(stmt, Instr):
        return name
    parts = []
    for key in stmt._fields:
        value = getattr(stmt, key)
        if isinstance(value, (Reg, Addr, Bar)):
            parts.append(value.buffer.name)
        elif isinstance(value, Desc):
            parts.append(value.addr.buffer.name)
        elif key in ("kind", "who", "map", "engine_of"):
            parts.append(str(value))
    return f"{name}({', '.join(parts)})"


def place(stmt: Stmt | None) -> str:
    """` at file:line` of a statement, or what it is when it has no place."""
    if stmt is None:
        return ""
    return f"{describe(stmt)} at {stmt.loc}" if stmt.loc is not None else describe(stmt)
