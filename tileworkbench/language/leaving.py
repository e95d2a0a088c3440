"""T.thread_return and T.loop_break: statements after which a thread goes on elsewhere."""

from __future__ import annotations

from typing import Any

from ..ir.node import Node, copied, node, replace, rewrite, walk
from ..ir.stmt import Alloc, Break, If, Stmt
from .builder import require
from .faults import fault


@node
class Leave(Stmt):
    """The thread has nothing more to do in this kernel. Gone when the kernel is finished."""


def thread_return() -> None:
    """Ends the kernel for the threads that come here."""
    builder = require("T.thread_return")
    if builder.within("for", "while", "parallel", "group") is not None:
        raise fault(
            "T.thread_return inside a loop or a `with T.ws` block",
            "threads leave a kernel from its body or a branch in it",
            "leave the loop by `break`, and return after it",
        )
    builder.emit(Leave(loc=builder.here))


def loop_break() -> None:
    """Python's `break`: ends the innermost loop."""
    builder = require("T.loop_break")
    if builder.within("for", "while") is None or builder.within("parallel") is not None:
        raise fault("T.loop_break outside a loop that runs in order", "it ends a loop", "write it inside the loop")
    builder.emit(Break(loc=builder.here))


def with_returns(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body without T.thread_return: what follows a branch that returns stands on its other side."""
    return _before(body, ()) if _leaves(body) else body


def _leaves(body: tuple[Node, ...]) -> bool:
    return any(isinstance(n, Leave) for n in walk(body))


def _before(body: tuple[Stmt, ...], after: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements of `body` and then those of `after`, as far as threads come."""
    for at, s in enumerate(body):
        if isinstance(s, Leave):
            return body[:at]
        if isinstance(s, If) and _leaves((s,)):
            rest = _before(body[at + 1 :], after)
            tiles = tuple(x for x in rest if isinstance(x, Alloc))
            rest = tuple(x for x in rest if not isinstance(x, Alloc))
            again = tuple(rewrite(x, _own) for x in rest)  # a statement stands at one place
            then, orelse = _before(s.then, rest), _before(s.orelse, again)
            return (*body[:at], *tiles, replace(s, then=then, orelse=orelse))
    return (*body, *after)


def _own(n: Node) -> Any:
    return copied(n) if isinstance(n, Stmt) else n
