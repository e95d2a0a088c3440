"""Scalar terms of a description: each prints itself as the language's text and knows its own value in NumPy.

All values are integers, held as int64: a term whose value is not exact in its dtype makes the description invalid, so
that no rounding rule enters the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

EXACT = {
    "float16": (-2048, 2048),
    "bfloat16": (-256, 256),
    "float32": (-(2**24), 2**24),
    "int8": (-128, 127),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint8": (0, 255),
    "bool": (0, 1),
}


MANY = -2


class Invalid(Exception):
    """The description has no defined meaning: an undefined or outside element, a value that is not exact."""


@dataclass
class Tile:
    """A buffer's state: values, which of them are defined, and whether reads outside give 0 (global tensors).

    `owner` and `reader` of a tensor: the block that wrote or read an element, so that blocks that meet are noticed."""

    data: np.ndarray
    defined: np.ndarray
    dtype: str
    outside: bool = False
    owner: np.ndarray | None = None
    reader: np.ndarray | None = None
    block: int = 0

    def note_read(self, at: tuple[np.ndarray, ...]) -> None:
        if self.reader is not None:
            self.reader[at] = np.where(np.isin(self.reader[at], (-1, self.block)), self.block, MANY)

    def note_write(self, at: tuple[np.ndarray, ...]) -> None:
        if self.owner is not None:
            if not np.isin(self.owner[at], (-1, self.block)).all():
                raise Invalid("two blocks write one element")
            self.owner[at] = self.block

    def blocks_meet(self) -> bool:
        """True when a block read what another one wrote."""
        if self.owner is None or self.reader is None:
            return False
        return bool(((self.owner >= 0) & (self.reader != -1) & (self.reader != self.owner)).any())


@dataclass
class Env:
    """Where terms are evaluated: scalars and loop variables by name, buffers by name, the iterations that are live, and
    in a parallel loop the buffers that it stores to with the text of their index."""

    names: dict[str, Any]
    tiles: dict[str, Tile]
    live: Any = True
    stores: dict[str, str] = field(default_factory=dict)

    def only(self, live: Any) -> Env:
        return Env(self.names, self.tiles, np.logical_and(self.live, live), self.stores)


def require_exact(value: Any, dtype: str, env: Env) -> Any:
    low, high = EXACT[dtype]
    bad = np.logical_and(env.live, np.logical_or(value < low, value > high))
    if np.any(bad):
        raise Invalid(f"a value is not exact in {dtype}")
    return value


@dataclass(frozen=True)
class Term:
    """A scalar expression of the language."""

    def parts(self) -> tuple[Term, ...]:
        return ()

    def walk(self) -> Iterator[Term]:
        yield self
        for part in self.parts():
            yield from part.walk()


@dataclass(frozen=True)
class Number(Term):
    value_: int
    dtype: str = "int32"
    plain: bool = True  # a Python number, whose dtype the context decides

    def text(self) -> str:
        return str(self.value_) if self.plain else f'T.cast({self.value_}, "{self.dtype}")'

    def value(self, env: Env) -> Any:
        return require_exact(np.int64(self.value_), self.dtype, env)


@dataclass(frozen=True)
class Name(Term):
    """A block index, loop variable, let, alloc_var or scalar parameter."""

    name: str
    dtype: str = "int32"

    def text(self) -> str:
        return self.name

    def value(self, env: Env) -> Any:
        if self.name not in env.names:
            raise Invalid(f"{self.name} is not in scope")
        return require_exact(env.names[self.name], self.dtype, env)


@dataclass(frozen=True)
class Get(Term):
    """An element of a tensor or tile."""

    buffer: str
    dtype: str
    index: tuple[Term, ...]

    def parts(self) -> tuple[Term, ...]:
        return self.index

    def at(self) -> str:
        return ", ".join(i.text() for i in self.index)

    def text(self) -> str:
        return f"{self.buffer}[{self.at()}]"

    def value(self, env: Env) -> Any:
        tile = env.tiles.get(self.buffer)
        if tile is None or tile.data.ndim != len(self.index):
            raise Invalid(f"{self.buffer} is not in scope")
        if env.stores.get(self.buffer, self.at()) != self.at():
            raise Invalid(f"{self.buffer} is stored by another iteration")
        index = np.broadcast_arrays(*[np.asarray(i.value(env)) for i in self.index])
        inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, tile.data.shape, strict=True)])
        clipped = tuple(np.clip(i, 0, max(0, n - 1)) for i, n in zip(index, tile.data.shape, strict=True))
        if not tile.data.size:
            return np.zeros(inside.shape, np.int64)
        if not tile.outside and np.any(np.logical_and(env.live, ~inside)):
            raise Invalid(f"{self.text()} is outside the tile")
        if np.any(np.logical_and(env.live, inside & ~tile.defined[clipped])):
            raise Invalid(f"{self.text()} is undefined")
        if tile.reader is not None:
            seen = np.logical_and(
                np.broadcast_to(env.live, np.broadcast_shapes(inside.shape, np.shape(env.live))), inside
            )
            tile.note_read(tuple(np.broadcast_to(c, seen.shape)[seen] for c in clipped))
        return np.where(inside, tile.data[clipped], 0)


_BINARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "+": ("({} + {})", np.add),
    "-": ("({} - {})", np.subtract),
    "*": ("({} * {})", np.multiply),
    "//": ("({} // {})", np.floor_divide),
    "%": ("({} % {})", np.mod),
    "min": ("T.min({}, {})", np.minimum),
    "max": ("T.max({}, {})", np.maximum),
    "&": ("({} & {})", np.bitwise_and),
    "|": ("({} | {})", np.bitwise_or),
    "^": ("({} ^ {})", np.bitwise_xor),
    ">>": ("({} >> {})", np.right_shift),
    "<<": ("({} << {})", np.left_shift),
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


@dataclass(frozen=True)
class Pair(Term):
    """A binary operation; both sides have the result's dtype."""

    op: str
    a: Term
    b: Term
    dtype: str = "int32"

    def parts(self) -> tuple[Term, ...]:
        return self.a, self.b

    def text(self) -> str:
        return _BINARY[self.op][0].format(self.a.text(), self.b.text())

    def value(self, env: Env) -> Any:
        a, b = self.a.value(env), self.b.value(env)
        if self.op in ("//", "%"):
            if np.any(np.logical_and(env.live, np.equal(b, 0))):
                raise Invalid("division by zero")
            b = np.where(np.equal(b, 0), 1, b)
        if self.op in ("<<", ">>"):
            b = np.clip(b, 0, 31)
        return require_exact(_BINARY[self.op][1](a, b), self.dtype, env)


@dataclass(frozen=True)
class Single(Term):
    """abs or negation."""

    op: str
    a: Term
    dtype: str

    def parts(self) -> tuple[Term, ...]:
        return (self.a,)

    def text(self) -> str:
        return f"T.abs({self.a.text()})" if self.op == "abs" else f"(-{self.a.text()})"

    def value(self, env: Env) -> Any:
        a = self.a.value(env)
        return require_exact(np.abs(a) if self.op == "abs" else np.negative(a), self.dtype, env)


@dataclass(frozen=True)
class To(Term):
    """A conversion that keeps the value."""

    a: Term
    dtype: str

    def parts(self) -> tuple[Term, ...]:
        return (self.a,)

    def text(self) -> str:
        return f'T.cast({self.a.text()}, "{self.dtype}")'

    def value(self, env: Env) -> Any:
        return require_exact(np.asarray(self.a.value(env), dtype=np.int64), self.dtype, env)


@dataclass(frozen=True)
class Test(Term):
    """A comparison; `dtype` is bool."""

    __test__ = False
    op: str
    a: Term
    b: Term
    dtype: str = "bool"

    def parts(self) -> tuple[Term, ...]:
        return self.a, self.b

    def text(self) -> str:
        return f"({self.a.text()} {self.op} {self.b.text()})"

    def value(self, env: Env) -> Any:
        return np.asarray(_COMPARE[self.op](self.a.value(env), self.b.value(env)), dtype=np.int64)


@dataclass(frozen=True)
class Both(Term):
    """`and` / `or`: the right side is only evaluated where the left does not decide."""

    op: str
    a: Term
    b: Term
    dtype: str = "bool"

    def parts(self) -> tuple[Term, ...]:
        return self.a, self.b

    def text(self) -> str:
        return f"({self.a.text()} {self.op} {self.b.text()})"

    def value(self, env: Env) -> Any:
        a = np.asarray(self.a.value(env)) != 0
        b = np.asarray(self.b.value(env.only(a if self.op == "and" else ~a))) != 0
        return np.asarray(a & b if self.op == "and" else a | b, dtype=np.int64)


@dataclass(frozen=True)
class Choose(Term):
    """A conditional value; the side that is not chosen is not evaluated."""

    cond: Term
    a: Term
    b: Term
    dtype: str
    ternary: bool = False

    def parts(self) -> tuple[Term, ...]:
        return self.cond, self.a, self.b

    def text(self) -> str:
        cond, a, b = self.cond.text(), self.a.text(), self.b.text()
        return f"({a} if {cond} else {b})" if self.ternary else f"T.if_then_else({cond}, {a}, {b})"

    def value(self, env: Env) -> Any:
        cond = np.asarray(self.cond.value(env)) != 0
        return np.where(cond, self.a.value(env.only(cond)), self.b.value(env.only(~cond)))
