"""The text form of kernels: like the user's own code at tile level, with roles, channels and split-phase operations at
planned level, and compact instructions at thread level. Deterministic: equal kernels give equal text."""

from __future__ import annotations

from typing import Any

from ..expr import Expr
from ..kernel import Kernel
from ..stmt import Stmt
from . import heading
from .expression import ExprText
from .line import Line, join
from .names import Names
from .statement import Writer

__all__ = ["Line", "Names", "lines", "show", "show_expr", "show_stmt"]


def show(kernel: Kernel) -> str:
    """The whole kernel as text."""
    return join(lines(kernel))


def lines(kernel: Kernel) -> list[Line]:
    """The kernel's text line by line, each with the user's place and the statement it came from."""
    w = Writer(Names(), kernel.versions)
    heading.signature(w, kernel)
    w.depth = 1
    heading.launch(w, kernel)
    w.depth = 2
    heading.facts(w, kernel)
    heading.plan(w, kernel)
    if kernel.level == "thread":
        heading.storage(w, kernel)
    start = len(w.lines)
    for s in kernel.body or ():
        w.statement(s)
    if not kernel.body:
        w.line("pass")
    used = [(dim, v) for dim, v in enumerate(kernel.thread_vars) if w.show.names.knows(v)]
    w.lines[start:start] = [Line(f"{w.show.names(v)} = T.get_thread_binding({dim})", v.loc, 2) for dim, v in used]
    return w.lines


def show_stmt(statement: Stmt | tuple[Stmt, ...], names: Names | None = None) -> str:
    """A statement (or several) as text, with what is nested in it."""
    w = Writer(names or Names())
    for s in statement if isinstance(statement, tuple) else (statement,):
        w.statement(s)
    return join(w.lines).rstrip("\n")


def show_expr(value: Expr | Any, names: Names | None = None) -> str:
    """An expression, region or other operand as text."""
    return ExprText(names or Names())(value)
