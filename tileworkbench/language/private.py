"""Fragments that no tile operation and no parallel loop touches: every thread uses its own, as an array."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.expr import Buffer
from ..ir.node import Node, children, map_items, replace, rewrite, walk
from ..ir.op import Op
from ..ir.region import root
from ..ir.stmt import Alloc, Stmt
from ..ops.descriptor_product import DescriptorProduct
from ..ops.parallel import Parallel


def with_private_fragments(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body with such fragments in local memory, where a thread may have values of its own."""
    made = [n.buffer for n in walk(body) if isinstance(n, Alloc) and n.buffer.space == "fragment"]
    if not made:
        return body
    spread = set(_spread(body)) | {root(b) for b in made if root(b) is not b} | {b for b in made if root(b) is not b}
    private = {b: replace(b, space="local") for b in made if b not in spread}
    if not private:
        return body

    def change(n: Node) -> Node:
        if isinstance(n, Buffer):
            return private.get(n, n)
        named = getattr(n, "buffer", None)
        return replace(n, buffer=private[named]) if named in private else n

    return map_items(body, lambda s: rewrite(s, change))


def _spread(body: Iterable[Node]) -> Iterable[Buffer]:
    """The buffers that operations of the whole block and parallel loops touch."""
    for s in body:
        inner = getattr(s, "body", None) if isinstance(s, Op) and not isinstance(s, Parallel) else None
        if isinstance(s, DescriptorProduct) or (isinstance(s, Op) and inner is None):
            yield from (n for n in walk(s) if isinstance(n, Buffer))
        else:
            yield from _spread(c for c in children(s) if isinstance(c, Stmt))
