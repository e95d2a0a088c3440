"""Serial loops of a block of one thread, run many iterations at a time: a nest around one store, in which every element
is written from values that no other element's iterations change. Each element still sees its own in their order."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Binary, Buffer, Call, Const, Expr, Load, Var, same
from ..ir.kernel import Kernel
from ..ir.node import Node, map_children, map_items, replace, rewrite, walk
from ..ir.region import root
from ..ir.stmt import For, Stmt, Store
from ..ops.parallel import Parallel

LEAST = 8  # iterations at once that are worth it


def spread(kernel: Kernel) -> Kernel:
    """The kernel with such nests as parallel loops inside the serial ones that are left. What the one thread has of its
    own is the block's then."""
    body = map_items(kernel.body, _changed)
    if body is kernel.body:
        return kernel
    own = {n for n in walk(body) if isinstance(n, Buffer) and n.space == "local"}
    shared = {b: replace(b, space="fragment") for b in own}
    return kernel.with_(
        body=map_items(body, lambda n: rewrite(n, lambda m: shared.get(m, m) if isinstance(m, Buffer) else m))
    )


def _changed(n: Node) -> Any:
    if isinstance(n, For):
        made = _nest(n)
        if made is not None:
            return made
    return map_children(n, lambda c: _changed(c) if isinstance(c, Stmt) else c)


def _nest(outer: For) -> Stmt | None:
    loops: list[For] = []
    inner: Stmt = outer
    while isinstance(inner, For):
        if inner.kind != "serial" or not _from_zero(inner) or len(inner.body) != 1:
            return None
        loops.append(inner)
        inner = inner.body[0]
    if not isinstance(inner, Store) or not _independent(inner, [loop.var for loop in loops]):
        return None
    along = [loop for loop in loops if any(n is loop.var for i in inner.indices for n in walk(i))]
    extents = tuple(int(loop.stop.value) for loop in along)  # type: ignore[attr-defined]
    if sum(extents) < LEAST:
        return None
    made: Stmt = Parallel(tuple(loop.var for loop in along), extents, (inner,), loc=outer.loc)
    for loop in reversed([loop for loop in loops if loop not in along]):
        made = For(loop.var, loop.start, loop.stop, loop.step, (made,), loc=loop.loc)
    return made


def _from_zero(loop: For) -> bool:
    bounds = (loop.start, loop.stop, loop.step)
    return all(isinstance(b, Const) for b in bounds) and bounds[0].value == 0 and bounds[2].value == 1  # type: ignore[attr-defined]


def _independent(s: Store, loop_vars: list[Var]) -> bool:
    """Whether iterations that write different elements neither read nor write one another's, and different values of
    the loop variables that are indices name different elements."""
    if s.buffer.space not in ("local", "global"):
        return False
    seen: list[Var] = []
    for index in s.indices:
        found = [n for n in walk(index) if any(n is v for v in loop_vars)]
        if (
            any(isinstance(n, Load | Call) for n in walk(index))
            or len(found) > 1
            or (found and not _plus(index, found[0]))
        ):
            return False
        seen += found  # type: ignore[arg-type]
    if len({id(v) for v in seen}) != len(seen):
        return False
    return all(_leaves_alone(n, s) for n in walk(s.value))


def _plus(index: Expr, var: Any) -> bool:
    """Whether an index is the variable, or something without it plus the variable."""
    return index is var or (isinstance(index, Binary) and index.op == "add" and (index.a is var or index.b is var))


def _leaves_alone(n: Node, s: Store) -> bool:
    if isinstance(n, Call):
        return False
    if not isinstance(n, Load):
        return True
    if root(n.buffer) is root(s.buffer):
        return n.buffer is s.buffer and all(map(same, n.indices, s.indices))
    return s.buffer.space == "local" or n.buffer.space == "local"  # two tensors may be one array
