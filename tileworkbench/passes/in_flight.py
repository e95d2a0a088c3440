"""Which of the kernel's own cp.async statements may still be in flight when they end.

A kernel that asks for a cp.async and then has a barrier arrived on when its copies have landed waits for them there.
Where nothing else could see the difference the copy is one; elsewhere it is done as ordinary loads and stores, which
are complete at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..ir.effects import accesses
from ..ir.expr import Buffer
from ..ir.kernel import Kernel
from ..ir.node import Node, children, replace, rewrite, walk
from ..ir.planned import Issue, Role
from ..ir.region import root
from ..ir.stmt import Break, Continue, For, Stmt
from ..ops.barrier import BarrierCopies
from ..target import Target
from .owners import owners

ASKED, MARK = "cp_async", "in_flight"


def with_copies_in_flight(kernel: Kernel, target: Target) -> Kernel:
    """The kernel, its cp.async loops marked that a barrier of its own waits for."""
    if not target.has("cp_async") or not any(isinstance(n, For) and n.attr(ASKED) for n in walk(kernel.body)):
        return kernel
    roles = [n for n in walk(kernel.body) if isinstance(n, Role)]
    found = {loop for role in roles for loop in _of_role(role, kernel, target)}

    def mark(n: Node) -> Node:
        return replace(n, attrs=(*n.attrs, (MARK, True))) if isinstance(n, For) and n in found else n

    return kernel.with_(body=tuple(rewrite(s, mark) for s in kernel.body)) if found else kernel


def filled(kernel: Kernel) -> frozenset[Buffer]:
    """Tiles that copies in flight fill."""
    loops = (n for n in walk(kernel.body) if isinstance(n, For) and n.attr(MARK))
    return frozenset(a.buffer for loop in loops for a in accesses(loop) if a.writes)


def _of_role(role: Role, kernel: Kernel, target: Target) -> list[For]:
    """The loops whose tile nothing else in the role touches, each element by one thread, and which come to the
    barrier."""
    if any(isinstance(n, (Break, Continue)) for n in _own(role.body)):
        return []
    loops = [loop for loop in _awaited(role.body, False) if loop.attr(ASKED)]
    written = {loop: next(a.buffer for a in accesses(loop) if a.writes) for loop in loops}
    by_copies = Counter(written.values())
    alone = owners(role, kernel, target.arch.warp_size)
    everywhere = Counter(root(a.buffer) for a in accesses(_outside_others(kernel.body, role)))
    return [
        loop for loop in loops
        if alone.get(written[loop]) == "thread" and everywhere[root(written[loop])] == by_copies[written[loop]]
    ]  # fmt: skip


def _own(body: tuple[Stmt, ...]) -> Iterator[Node]:
    """What the role does itself, not the roles inside it."""
    for s in body:
        if not isinstance(s, Role):
            yield s
            yield from _own(tuple(c for c in children(s) if isinstance(c, Stmt)))


def _outside_others(body: tuple[Stmt, ...], role: Role) -> tuple[Stmt, ...]:
    """The role's statements and those of the roles around it: those beside it are ordered by the kernel's barriers."""
    out: list[Stmt] = []
    for s in body:
        if not isinstance(s, Role):
            out.append(s)
        elif s is role:
            out += s.body
        elif any(n is role for n in walk(s)):
            out += _outside_others(s.body, role)
    return tuple(out)


def _awaited(body: tuple[Stmt, ...], later: bool) -> Iterator[For]:
    """Loops that the barrier's arrival follows for every thread that comes to them."""
    for at, s in enumerate(body):
        if isinstance(s, Role):
            continue
        after = later or any(_arrival(x) for x in body[at + 1 :])
        if isinstance(s, For) and after:
            yield s
        yield from _awaited(tuple(c for c in children(s) if isinstance(c, Stmt)), after)


def _arrival(s: Stmt) -> bool:
    return isinstance(s, Issue) and isinstance(s.op, BarrierCopies) and s.pred is None
