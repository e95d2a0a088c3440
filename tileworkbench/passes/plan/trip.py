"""The order of one loop trip's statements when asynchronous products may run beside ordinary work.

Statements are nodes; two nodes that touch the same tile, register tile, variable or channel in conflicting ways keep
their order. The list scheduler walks them with a small model of one SM: ordinary statements take their time one after
the other, a product occupies the tensor cores from its issue on, and its completion waits for it. Rates are those of
the target's card (`target/issue.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from ...ir.effects import accesses
from ...ir.node import walk
from ...ir.op import Impl, Op
from ...ir.planned import Acquire, Commit, Complete, Issue, Release, Wait
from ...ir.stmt import Alloc, Let, Stmt
from ...ops.gemm import Gemm
from ...target import Target
from ...target.issue import lanes_clocks, wgmma_clocks

MOST_PERMUTED = 4  # products of a trip whose orders are all tried
SLOW = ("exp", "exp2", "log", "log2", "tanh", "sin", "cos", "sqrt", "rsqrt", "sigmoid", "erf")


@dataclass
class Node:
    """One statement of a trip. `before` are the nodes that must come earlier; `clocks` its ordinary time, `tensor` the
    time of the product that it issues."""

    stmt: Stmt
    index: int
    clocks: float = 0.0
    tensor: float = 0.0
    before: set[int] = field(default_factory=set)

    @property
    def issues(self) -> bool:
        """It starts an asynchronous product."""
        return isinstance(self.stmt, Issue) and self.tensor > 0

    @property
    def completes(self) -> bool:
        """It waits for one."""
        return isinstance(self.stmt, Complete) and is_async(self.stmt.impl)


def is_async(impl: Impl) -> bool:
    """A product that runs beside its issuer until it is waited for."""
    return impl.engine == "tensor" and impl.completion == "group"


def touched(s: Stmt) -> tuple[set[Any], set[Any]]:
    """What a statement reads and writes: buffers, variables, channels."""
    if isinstance(s, (Wait, Release, Acquire, Commit)):
        return set(), {s.channel, *s.channel.buffers} if not isinstance(s, Commit) else {s.channel}
    if isinstance(s, Alloc):
        return set(), set()
    found = list(accesses(s.op if isinstance(s, Complete) else s))
    reads: set[Any] = {a.buffer for a in found if a.reads}
    writes: set[Any] = {a.buffer for a in found if a.writes}
    if isinstance(s, Let):
        writes.add(s.var)
    return reads, writes


def nodes(statements: Sequence[Stmt], target: Target) -> list[Node]:
    """The trip's statements with the order that their accesses ask for, and their times on one of the processors."""
    out = [Node(s, i, *_cost(s, target)) for i, s in enumerate(statements)]
    sets = [touched(s) for s in statements]
    for j, (reads, writes) in enumerate(sets):
        for i in range(j):
            earlier_reads, earlier_writes = sets[i]
            if writes & (earlier_reads | earlier_writes) or reads & earlier_writes:
                out[j].before.add(i)
    return out


def _cost(s: Stmt, target: Target) -> tuple[float, float]:
    """(ordinary clocks, tensor clocks) of a statement on one processor."""
    if isinstance(s, (Issue, Complete)):
        if isinstance(s.op, Gemm):
            return (0.0, _product(s.op, s.impl, target)) if isinstance(s, Issue) and is_async(s.impl) else (0.0, 0.0)
        return (_ordinary(s.op, target), 0.0) if isinstance(s, Issue) else (0.0, 0.0)
    return (0.0, 0.0)


def _product(op: Gemm, impl: Impl, target: Target) -> float:
    """All instructions of the tile, one after the other."""
    atom, (m, n, k) = impl.detail["atom"], op.mnk
    count = m // atom.m * (n // atom.n) * (k // atom.k)
    in_shared = op.a.buffer.space == "shared"
    known = atom.a_dtype if target.device.peak(atom.a_dtype) else "fp16"  # a card of another family than the code's
    return float(count * wgmma_clocks(target, atom.n, a_in_shared=in_shared, dtype=known))


def _ordinary(op: Op, target: Target) -> float:
    """Elements times instructions over lanes; special functions at their own rate."""
    sizes = [math.prod(b.shape) for b in {a.buffer for a in op.effects()} if b.space == "fragment"]
    elements = max(sizes, default=0)
    calls = [n for n in walk(op) if type(n).__name__ == "Call"]
    slow = sum(1 for n in calls if getattr(n, "fn", "") in SLOW)
    plain = sum(1 for n in walk(op) if type(n).__name__ in ("Binary", "Select", "Cast", "Store")) or 2
    return lanes_clocks(target, elements * plain, "fma_lanes") + lanes_clocks(target, elements * slow, "mufu_lanes")


@dataclass(frozen=True)
class Order:
    """Node indices in order, and the trip's modelled clocks."""

    sequence: tuple[int, ...]
    clocks: float


def sequential(trip: Sequence[Node]) -> Order:
    """The order as written."""
    return Order(tuple(range(len(trip))), _clocks(trip, range(len(trip))))


def scheduled(trip: Sequence[Node]) -> Order:
    """Products as early as their inputs allow, completions as late as their results are needed; of the orders in which
    the products may be issued, the one whose modelled trip is shortest."""
    products = [i for i, node in enumerate(trip) if node.issues]
    wishes = permutations(products) if len(products) <= MOST_PERMUTED else [tuple(products)]
    return min((_list_schedule(trip, wish) for wish in wishes), key=lambda order: order.clocks)


def _list_schedule(trip: Sequence[Node], wish: Sequence[int]) -> Order:
    done: list[int] = []
    left = set(range(len(trip)))
    while left:
        chosen = _next_issue(trip, left, wish) or _next_plain(trip, left) or _next_completion(trip, left, done)
        done += chosen
        left.difference_update(chosen)
    return Order(tuple(done), _clocks(trip, done))


def _ancestors(trip: Sequence[Node], i: int, left: set[int]) -> set[int]:
    found: set[int] = set()
    stack = [i]
    while stack:
        for p in trip[stack.pop()].before & left:
            if p not in found:
                found.add(p)
                stack.append(p)
    return found


def _next_issue(trip: Sequence[Node], left: set[int], wish: Sequence[int]) -> list[int]:
    """The first product of the wished order that waits for no other product, after the work that it needs."""
    for i in wish:
        if i not in left:
            continue
        needed = _ancestors(trip, i, left)
        if not any(trip[p].completes or trip[p].issues for p in needed):
            return [*sorted(needed), i]
    return []


def _next_plain(trip: Sequence[Node], left: set[int]) -> list[int]:
    ready = [i for i in sorted(left) if not trip[i].before & left and not trip[i].completes and not trip[i].issues]
    return ready[:1]


def _next_completion(trip: Sequence[Node], left: set[int], done: Sequence[int]) -> list[int]:
    """The product issued first among those that may be waited for: groups finish in the order of their issue."""
    issued = [trip[i].stmt.op for i in done if trip[i].issues]  # type: ignore[attr-defined]
    ready = [i for i in sorted(left) if not trip[i].before & left]

    def turn(i: int) -> int:
        op = getattr(trip[i].stmt, "op", None)
        return next((n for n, other in enumerate(issued) if other is op), -1)

    return sorted(ready, key=turn)[:1]


def _clocks(trip: Sequence[Node], order: Sequence[int]) -> float:
    now = tensor_free = 0.0
    finish: dict[Any, float] = {}
    for i in order:
        node = trip[i]
        if node.issues:
            tensor_free = max(now, tensor_free) + node.tensor
            finish[node.stmt.op] = tensor_free  # type: ignore[attr-defined]
        elif node.completes:
            now = max(now, finish.get(node.stmt.op, now))  # type: ignore[attr-defined]
        now += node.clocks
    return max(now, tensor_free)
