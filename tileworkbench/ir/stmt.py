"""Statements that all levels share: loops, branches, lets and element stores."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from .expr import Buffer, Const, Expr, Var, const
from .node import Node, node


class Stmt(Node):
    """Something that is executed. Bodies are tuples of statements."""

    __slots__ = ()


@node
class For(Stmt):
    """`for var in range(start, stop, step)`. kind: serial, unroll (must be flattened by the device compiler), vector
    (lanes of one access), pipelined, persistent. `attrs` holds the user's hints, e.g. ("num_stages", 3)."""

    var: Var
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Stmt, ...]
    kind: str = "serial"
    attrs: tuple[tuple[str, Any], ...] = field(default=())

    def attr(self, key: str, default: Any = None) -> Any:
        """The user's hint of this name."""
        return dict(self.attrs).get(key, default)

    @property
    def trips(self) -> int | None:
        """How often the loop runs; None where a bound is known only at run time."""
        bounds = (self.start, self.stop, self.step)
        if not all(isinstance(e, Const) for e in bounds):
            return None
        return len(range(*(int(e.value) for e in bounds)))  # type: ignore[attr-defined]


@node
class While(Stmt):
    """The body as long as `cond` holds, which is asked before each trip."""

    cond: Expr
    body: tuple[Stmt, ...]


@node
class Break(Stmt):
    """Leaves the innermost loop."""


@node
class Continue(Stmt):
    """Goes on with the next trip of the innermost loop."""


@node
class If(Stmt):
    """`then` where `cond` holds, else `orelse`."""

    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@node
class Let(Stmt):
    """`var = value`, immutable, in scope to the end of the enclosing body."""

    var: Var
    value: Expr


@node
class Alloc(Stmt):
    """Declares a tile-level buffer where the user wrote it. Contents are undefined until written."""

    buffer: Buffer


@node
class Store(Stmt):
    """`buffer[indices] = value`. At thread level only register buffers are written this way."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@node
class Eval(Stmt):
    """An expression kept for its side effect."""

    value: Expr


@node
class Assert(Stmt):
    """Ends the kernel with `message` where `cond` does not hold."""

    cond: Expr
    message: str = ""


@node
class Print(Stmt):
    """Device print. `parts` are literal strings and expressions in order."""

    parts: tuple[Any, ...]


@node
class Region(Node):
    """A box of a buffer: per dimension a start and an extent."""

    buffer: Buffer
    starts: tuple[Expr, ...]
    extents: tuple[Any, ...]  # int or Expr

    @property
    def tile(self) -> tuple[Any, ...]:
        """Extents without the leading ones that are 1."""
        shape = self.extents
        while len(shape) > 1 and isinstance(shape[0], int) and shape[0] == 1:
            shape = shape[1:]
        return shape


def whole(buffer: Buffer) -> Region:
    """The region that covers all of a buffer."""
    from_zero = tuple(ZERO for _ in buffer.shape)
    return Region(buffer, from_zero, buffer.shape)


ZERO, ONE = const(0), const(1)
