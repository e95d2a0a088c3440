"""The one base of every IR node: frozen, compared by identity, with walking and rewriting derived from its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

from ..errors import Loc

N = TypeVar("N", bound="Node")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def node(cls: type[N]) -> type[N]:
    """Declares a node class: a frozen dataclass with slots whose equality is identity."""
    made = dataclass(frozen=True, eq=False, slots=True)(cls)
    names = tuple(f.name for f in fields(made) if f.name not in ("loc", "dtype"))
    made._fields = names
    return made


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """`loc` is the user's place this node came from; every pass keeps it."""

    loc: Loc | None = field(default=None, kw_only=True, repr=False)


Node._fields = ()  # type: ignore[attr-defined]


def children(n: Node) -> Iterator[Node]:
    """The nodes directly below `n`, in field order."""
    for name in n._fields:  # type: ignore[attr-defined]
        value = getattr(n, name)
        if isinstance(value, Node):
            yield value
        elif type(value) is tuple:
            for item in value:
                if isinstance(item, Node):
                    yield item


def walk(n: Node | tuple[Node, ...]) -> Iterator[Node]:
    """`n` and everything below it, parents first, in program order. Buffers are leaves."""
    stack = list(reversed(n)) if isinstance(n, tuple) else [n]
    while stack:
        top = stack.pop()
        yield top
        if top._fields:  # type: ignore[attr-defined]
            stack.extend(reversed(list(children(top))))


def replace(n: N, **changes: Any) -> N:
    """`n` with some fields changed; `n` itself when nothing differs."""
    if all(getattr(n, key) is value for key, value in changes.items()):
        return n
    values = {f.name: getattr(n, f.name) for f in fields(n)}
    values.update(changes)
    return type(n)(**values)


def map_children(n: N, fn: Callable[[Node], Node | tuple[Node, ...] | None]) -> N:
    """`n` with `fn` applied to each direct child; the same object when nothing changed.

    Inside a tuple (a body) `fn` may return a tuple to splice, or None to drop the child."""
    changes: dict[str, Any] = {}
    for name in n._fields:  # type: ignore[attr-defined]
        value = getattr(n, name)
        if isinstance(value, Node):
            new = fn(value)
            if new is not value:
                changes[name] = new
        elif type(value) is tuple and value and any(isinstance(item, Node) for item in value):
            new_items = map_items(value, fn)
            if new_items is not value:
                changes[name] = new_items
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
    """Bottom-up rewriting: children first, then `fn` on the node made of them. Untouched subtrees keep their identity."""

    def go(m: Node) -> Node | tuple[Node, ...] | None:
        return fn(map_children(m, go) if m._fields else m)  # type: ignore[attr-defined]

    return go(n)
