"""How a broken invariant is reported: the rule, the statement as text and the user's place."""

from __future__ import annotations

from typing import Any

from ...errors import InternalError
from ..kernel import Kernel
from ..node import Node
from ..stmt import Stmt
from ..text import show_expr, show_stmt


def broken(message: str, at: Node | Kernel, rule: str) -> InternalError:
    """The error to raise; a statement is quoted by its first line."""
    quoted = f": `{show_stmt(at).splitlines()[0]}`" if isinstance(at, Stmt) else ""
    return InternalError(f"{message}{quoted}", rule=rule, loc=at.loc)


def quote(value: Any) -> str:
    """An expression or operand inside a message."""
    return f"`{show_expr(value)}`"
