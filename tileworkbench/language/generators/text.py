"""Statements being written for a generator, and what all generators can be asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ...ir.dtype import INT32, UINT32, UINT64, DType
from ...ir.expr import Buffer, Expr, Load, Var, as_expr, cast
from ...ir.stmt import Alloc, For, If, Let, Stmt, Store, While
from ..builder import Builder


class Generator(Protocol):
    """`start` is T.rng_init; `word` draws 32 bits, `uniform` a number in (0, 1] times `scale`."""

    def start(self, out: Text, seed: Expr, sequence: Expr, offset: Expr) -> None: ...

    def word(self, out: Text) -> Expr: ...

    def uniform(self, out: Text, dtype: DType, scale: float = 1.0) -> Expr: ...


@dataclass
class Text:
    """Statements in the order of their writing."""

    builder: Builder
    made: list[Stmt] = field(default_factory=list)

    def let(self, name: str, value: Expr) -> Var:
        var = self._name(name, value.dtype)
        self.made.append(Let(var, value, loc=self.builder.here))
        return var

    def store(self, place: Buffer, value: Expr, at: int = 0) -> None:
        self.made.append(Store(place, (as_expr(at),), value, loc=self.builder.here))

    def inner(self) -> Text:
        return Text(self.builder)

    def branch(self, cond: Expr, then: Text) -> None:
        self.made.append(If(cond, tuple(then.made), (), loc=self.builder.here))

    def while_(self, cond: Expr, body: Text) -> None:
        self.made.append(While(cond, tuple(body.made), loc=self.builder.here))

    def index(self, name: str) -> Var:
        return self._name(name, INT32)

    def repeat(self, var: Var, count: int, body: Text) -> None:
        zero, one = as_expr(0, INT32), as_expr(1, INT32)
        kept = (("unroll", 1),)  # its body is long enough
        made = For(var, zero, as_expr(count, INT32), one, tuple(body.made), attrs=kept, loc=self.builder.here)
        self.made.append(made)

    def emit(self) -> None:
        for s in self.made:
            self.builder.emit(s)

    def _name(self, name: str, dtype: DType) -> Var:
        var = Var(self.builder.unique(name), dtype=dtype, loc=self.builder.here)
        self.builder.define(var)
        return var


def private(builder: Builder, name: str, dtype: DType, size: int = 1) -> Buffer:
    """A variable of each thread, allocated where the kernel begins: a generator may be started in a branch and used
    after it."""
    kernel = next(f for f in builder.frames if f.kind == "kernel")
    made = Buffer(builder.unique(name), (size,), dtype, "local", None, (("sequential", True),), loc=builder.here)
    kernel.body.insert(0, Alloc(made, loc=builder.here))
    kernel.defined.append(made)
    return made


def load(b: Buffer, at: int = 0) -> Load:
    return Load(b, (as_expr(at),))


def u32(n: int) -> Expr:
    return as_expr(n, UINT32)


def u64(n: int) -> Expr:
    return as_expr(n, UINT64)


def low(x: Expr) -> Expr:
    return cast(x, UINT32)


def high(x: Expr) -> Expr:
    return cast(x >> u64(32), UINT32)
