"""The one base of every IR node: frozen, compared by identity, with walking and rewriting derived from its fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar, dataclass_transform

from ..errors import Loc

N = TypeVar("N", bound="Node")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def node(cls: type[N]) -> type[N]:
    """Declares a node class: a frozen dataclass with slots whose equality is identity."""
    made = dataclass(frozen=True, eq=False, slots=True)(cls)
    every = fields(made)
    made._all = tuple(f.name for f in every)
    made._fields = tuple(f.name for f in every if f.name not in ("loc", "dtype"))
    made._links = tuple(f.name for f in every if f.name not in ("loc", "dtype") and _may_hold_nodes(str(f.type)))
    return made


# Words of annotations that say "plain data": fields of nothing else are passed over by every walk.
_PLAIN = frozenset({"str", "int", "float", "bool", "None", "tuple", "Impl", "DType"})


def _may_hold_nodes(annotation: str) -> bool:
    if annotation == "tuple[tuple[str, Any], ...]":  # hints and attributes: pairs, no nodes of the tree
        return False
    return not set(re.findall(r"\w+", annotation)) <= _PLAIN


def leaf(cls: type[N]) -> type[N]:
    """Declares that walks and rewrites do not enter nodes of this class."""
    cls._fields = cls._links = ()
    return cls


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """`loc` is the user's place this node came from; every pass keeps it."""

    loc: Loc | None = field(default=None, kw_only=True, repr=False)
    _all: ClassVar[tuple[str, ...]] = ()
    _fields: ClassVar[tuple[str, ...]] = ()  # what the node says; its place and type aside
    _links: ClassVar[tuple[str, ...]] = ()  # those of them that may hold nodes


def children(n: Node) -> Iterator[Node]:
    """The nodes directly below `n`, in field order."""
    found: list[Node] = []
    for name in n._links:
        value = getattr(n, name)
        if type(value) is tuple:
            found += [item for item in value if isinstance(item, Node)]
        elif isinstance(value, Node):
            found.append(value)
    return iter(found)


def walk(n: Node | tuple[Node, ...]) -> Iterator[Node]:
    """`n` and everything below it, parents first, in program order. Buffers are leaves."""
    stack = list(n[::-1]) if isinstance(n, tuple) else [n]
    pop = stack.pop
    while stack:
        top = pop()
        yield top
        for name in top._links[::-1]:
            value = getattr(top, name)
            if type(value) is tuple:
                stack += [item for item in value[::-1] if isinstance(item, Node)]
            elif isinstance(value, Node):
                stack.append(value)


def replace(n: N, **changes: Any) -> N:
    """`n` with some fields changed; `n` itself when nothing differs."""
    if all(getattr(n, key) is value for key, value in changes.items()):
        return n
    return copied(n, **changes)


def copied(n: N, **changes: Any) -> N:
    """Another node that says the same as `n`, with some fields changed."""
    values = {name: getattr(n, name) for name in n._all}
    values.update(changes)
    return type(n)(**values)


def map_children(n: N, fn: Callable[[Node], Node | tuple[Node, ...] | None]) -> N:
    """`n` with `fn` applied to each direct child; the same object when nothing changed.

    Inside a tuple (a body) `fn` may return a tuple to splice, or None to drop the child."""
    changes: dict[str, Any] = {}
    for name in n._links:
        value = getattr(n, name)
        new: Node | tuple[Any, ...] | None
        if type(value) is tuple:
            new = map_items(value, fn)
        elif isinstance(value, Node):
            new = fn(value)
        else:
            continue
        if new is not value:
            changes[name] = new
    return replace(n, **changes) if changes else n


def map_items(items: tuple[Any, ...], fn: Callable[[Node], Node | tuple[Node, ...] | None]) -> tuple[Any, ...]:
    """The tuple with `fn` applied to each node in it (splicing tuples, dropping None); the same tuple if unchanged."""
    out: list[Any] = []
    changed = False
    for item in items:
        new = fn(item) if isinstance(item, Node) else item
        changed |= new is not item
        if type(new) is tuple:
            out.extend(new)
        elif new is not None:
            out.append(new)
    return tuple(out) if changed else items


def rewrite(n: N, fn: Callable[[Node], Node | tuple[Node, ...] | None]) -> Any:
    """Bottom-up rewriting: children first, then `fn` on the node made of them. Untouched subtrees keep their
    identity."""

    def go(m: Node) -> Node | tuple[Node, ...] | None:
        return fn(map_children(m, go) if m._links else m)

    return go(n)
