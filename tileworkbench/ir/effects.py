"""Which buffers a statement touches, and how: the ops answer for themselves, element code is read off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .expr import Buffer, Load
from .node import Node, children
from .op import Access, ElementStmt, Op
from .planned import Complete, Issue
from .stmt import Stmt, Store


def accesses(s: Stmt | tuple[Stmt, ...]) -> Iterator[Access]:
    """Every access of a statement and what is nested in it, in program order, reads before the write they feed."""
    stack: list[Any] = list(reversed(s)) if isinstance(s, tuple) else [s]
    while stack:
        top = stack.pop()
        if isinstance(top, Access):
            yield top
            continue
        if isinstance(top, Issue):
            top = top.op
        if isinstance(top, Complete):
            continue
        if isinstance(top, Op):
            yield from top.effects()
            yield from _loads(top)
        elif isinstance(top, Load):
            yield Access(top.buffer, "r")
            stack.extend(reversed(list(children(top))))
        elif isinstance(top, Store):
            stack.append(Access(top.buffer, "w"))
            stack.extend(reversed([c for c in children(top) if not isinstance(c, Buffer)]))
        elif isinstance(top, ElementStmt):
            yield from top.element_access()
            stack.extend(reversed([c for c in children(top) if not isinstance(c, Buffer)]))
        elif not isinstance(top, Buffer):
            stack.extend(reversed(list(children(top))))


def _loads(op: Op) -> Iterator[Access]:
    """Element loads inside an op's own expressions (indices, fill values)."""
    seen: list[Node] = list(children(op))
    while seen:
        n = seen.pop()
        if isinstance(n, Buffer):
            continue
        if isinstance(n, Load):
            yield Access(n.buffer, "r")
        if not isinstance(n, Stmt):
            seen.extend(children(n))


def touches(s: Stmt | tuple[Stmt, ...], buffer: Buffer) -> bool:
    """True when the statement reads or writes the buffer."""
    return any(a.buffer is buffer for a in accesses(s))


def writes(s: Stmt | tuple[Stmt, ...]) -> set[Buffer]:
    """Buffers that the statement writes, wholly or in part."""
    return {a.buffer for a in accesses(s) if a.writes}


def reads(s: Stmt | tuple[Stmt, ...]) -> set[Buffer]:
    """Buffers that the statement reads, wholly or in part."""
    return {a.buffer for a in accesses(s) if a.reads}
