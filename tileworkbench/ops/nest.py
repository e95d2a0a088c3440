"""A nest of parallel loops over elements, and every access in it to a fragment: the serial loops around it, and the
conditions under which it happens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import LanguageError
from ..ir.expr import Buffer, Const, Expr, Load, Var, logical_not
from ..ir.node import Node, children
from ..ir.stmt import For, If, Stmt, Store
from .atomic_element import AtomicElement


@dataclass(frozen=True)
class Use:
    """One fragment access in a loop body, with the serial loops around it and the conditions under which it happens."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    writes: bool
    inner: tuple[For, ...] = ()
    guards: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Nest:
    """A parallel loop nest with what its layout depends on."""

    vars: tuple[Var, ...]
    extents: tuple[int, ...]
    uses: tuple[Use, ...]
    memory: tuple[Use, ...]  # shared and global accesses

    @staticmethod
    def of(loop_vars: Sequence[Var], extents: Sequence[Any], body: tuple[Stmt, ...]) -> Nest:
        """The nest of a parallel loop."""
        sizes = tuple(_static(e) for e in extents)
        found = list(_uses(body, (), ()))
        return Nest(
            tuple(loop_vars),
            sizes,
            tuple(u for u in found if u.buffer.space == "fragment"),
            tuple(u for u in found if u.buffer.space in ("shared", "global")),
        )

    def updates_memory(self) -> bool:
        """True when iterations change memory that they read: replicas of one would read what another has changed."""
        written = {u.buffer for u in self.memory if u.writes}
        return any(u.buffer in written and not u.writes for u in self.memory)

    def covers(self, s: Store) -> bool:
        """True when the store, done in every iteration, reaches every element of its buffer."""
        return identity(Use(s.buffer, s.indices, True), self) is not None


def _static(extent: Any) -> int:
    if isinstance(extent, Const):
        return int(extent.value)
    if isinstance(extent, int):
        return extent
    raise LanguageError(
        "the extent of a T.Parallel loop is known only at run time",
        rule="parallel loops are spread over threads while compiling, so their extents are constants",
        fix="loop over a constant tile and guard the body with an if",
        loc=getattr(extent, "loc", None),
    )


def _uses(n: Any, inner: tuple[For, ...], guards: tuple[Expr, ...]) -> Iterator[Use]:
    if isinstance(n, tuple):
        for item in n:
            yield from _uses(item, inner, guards)
        return
    if isinstance(n, If):
        yield from _uses(n.cond, inner, guards)
        yield from _uses(n.then, inner, (*guards, n.cond))
        yield from _uses(n.orelse, inner, (*guards, logical_not(n.cond)))
        return
    if isinstance(n, Load):
        yield Use(n.buffer, n.indices, False, inner, guards)
    elif isinstance(n, (Store, AtomicElement)):
        yield Use(n.buffer, n.indices, True, inner, guards)
    deeper = (*inner, n) if isinstance(n, For) else inner
    if isinstance(n, Node) and not isinstance(n, Buffer):
        for child in children(n):
            yield from _uses(child, deeper, guards)


def identity(use: Use, nest: Nest) -> tuple[int, ...] | None:
    """Which loop dimension each index is, when all indices are different plain loop variables over whole dimensions."""
    dims = []
    places = {v: d for d, v in enumerate(nest.vars)}  # `==` on variables builds IR, so tuples cannot be searched
    for index, extent in zip(use.indices, use.buffer.shape, strict=True):
        if isinstance(index, Const) and index.value == 0 and extent == 1:
            dims.append(-1)
        elif isinstance(index, Var) and index in places and nest.extents[places[index]] == extent:
            dims.append(places[index])
        else:
            return None
    real = [d for d in dims if d >= 0]
    return tuple(dims) if len(set(real)) == len(real) else None
