"""Expressions compiled to closures, once a node: one gives the value for all lanes, one where it is undefined.

Definedness is a matter of shadow bits, never of values: a NaN is a legal value and an integer has none. An expression
without register reads cannot be undefined; its second closure is None and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import InternalError
from ...ir.dtype import BOOL, DType
from ...ir.expr import Buffer, Expr, Var, const
from .warp import Warp

Read = Callable[[Warp], Any]


@dataclass(frozen=True, slots=True)
class Value:
    """`read(w)` is the value; `undefined(w)` a mask of lanes, or None when all are defined (or None altogether)."""

    read: Read
    undefined: Read | None
    dtype: DType
    constant: Any = None

    def mask(self, w: Warp) -> Any:
        return self.undefined(w) if self.undefined is not None else None


def either(a: Any, b: Any) -> Any:
    """The union of two undefined masks."""
    if a is None:
        return b
    return a if b is None else a | b


def union(*parts: Value) -> Read | None:
    """Where any of the parts is undefined; None when none can be."""
    readers = [p.undefined for p in parts if p.undefined is not None]
    if not readers:
        return None
    if len(readers) == 1:
        return readers[0]

    def undefined(w: Warp) -> Any:
        found = None
        for reader in readers:
            found = either(found, reader(w))
        return found

    return undefined


class Scope:
    """Where variables and registers live: slots shared by all warps of a kernel. `tracked` are the register buffers
    that asynchronous matrix instructions name; `makers` compile each class of expression."""

    def __init__(self, lanes: int, tracked: frozenset[Buffer], makers: Mapping[type, Maker]) -> None:
        self.lanes, self.tracked, self.makers = lanes, tracked, makers
        self.slots: dict[Var, int] = {}
        self.maybe_undefined: set[Var] = set()
        self.registers: dict[Buffer, int] = {}
        self._memo: dict[int, tuple[Expr, Value]] = {}

    def slot(self, var: Var) -> int:
        return self.slots.setdefault(var, len(self.slots))

    def register(self, buffer: Buffer) -> int:
        return self.registers.setdefault(buffer, len(self.registers))

    def value(self, e: Any) -> Value:
        """The compiled form of an expression or a Python number."""
        if isinstance(e, (bool, int, float)):
            return Value(lambda w: e, None, BOOL, e)
        found = self._memo.get(id(e))
        if found is None:
            made = self.makers[type(e)](self, e)
            found = self._memo[id(e)] = (e, made)  # the node is kept so that its id stays its own
        return found[1]


Maker = Callable[[Scope, Any], Value]


def flat_index(s: Scope, buffer: Buffer, indices: tuple[Expr, ...]) -> Value:
    """Row-major element number of `buffer[indices]`."""
    if len(indices) != len(buffer.shape):
        raise InternalError(f"{len(indices)} indices for {buffer.name} of rank {len(buffer.shape)}")
    total: Expr | None = None
    for index, extent in zip(indices, buffer.shape, strict=True):
        total = index if total is None else total * extent + index
    return s.value(total if total is not None else const(0))
