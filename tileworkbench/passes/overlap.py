"""Overlap of products with the work between them, by splitting a loop's trip into two stages.

When a trip issues two asynchronous products or more, the statements before some cut (stage 0) can run one trip ahead of
those after it (stage 1): the steady trip then holds stage 1 of trip i and stage 0 of trip i + 1, whose products and
ordinary work are independent and run side by side. Every cut is tried, the trip's order is found by the list scheduler
of `plan/trip.py`, and the best one is taken when the model says that it pays. Tiles have one version, so whatever stage
1 still reads is overwritten only after it: those are edges like all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.arith import substitute
from ..ir.expr import Expr, Load, Var, compare
from ..ir.kernel import Kernel
from ..ir.node import replace, walk
from ..ir.op import Op
from ..ir.planned import Complete, Issue, Release, Role, Wait
from ..ir.stmt import Alloc, For, If, Let, Stmt
from ..target import Target
from .plan.trip import Node, Order, is_async, nodes, scheduled, sequential

EQUAL = 1.02  # modelled times that differ by less are the same
WORTH_IT = 0.95  # a split must take at most this share of the plain trip's modelled time


@dataclass(frozen=True)
class Split:
    """Stage 0 is what stands before `cut`; `trip` is stage 1 followed by stage 0 of the next trip, in `order`."""

    cut: int
    trip: tuple[Node, ...]
    order: Order


def overlap(kernel: Kernel, target: Target) -> Kernel:
    """Loops of roles that only consume, split where that pays; each split or refusal with a reason is noted."""
    if kernel.attrs.get("no_overlap"):
        return kernel
    notes: list[str] = []
    body = tuple(replace(r, body=_body(r.body, target, notes)) if isinstance(r, Role) else r for r in kernel.body)
    return kernel.with_(body=body, notes=(*kernel.notes, *notes))


def _body(body: tuple[Stmt, ...], target: Target, notes: list[str]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for s in body:
        out += _loop(s, target, notes) if isinstance(s, For) else [s]
    return tuple(out)


def _loop(loop: For, target: Target, notes: list[str]) -> list[Stmt]:
    if sum(isinstance(s, Issue) and is_async(s.impl) for s in loop.body) < 2:
        return [replace(loop, body=_body(loop.body, target, notes))]
    body = _without_lets(loop.body)
    if body is None or not _plain(body):
        return [loop]
    plain = sequential(nodes(body, target))
    splits = [s for s in (_split(loop, body, cut, target) for cut in range(1, len(body))) if s is not None]
    least = min((s.order.clocks for s in splits), default=plain.clocks)
    if least > WORTH_IT * plain.clocks:
        return [loop]
    # Of equals the latest cut: a trip should not end with a wait, because the device compiler moves a wait that nothing
    # follows up in front of the work that it was meant to overlap with.
    best = max((s for s in splits if s.order.clocks <= EQUAL * least), key=lambda s: s.cut)
    clocks = f"{best.order.clocks:.0f} of {plain.clocks:.0f} modelled clocks a trip"
    notes.append(f"products overlap with the next trip's work: {clocks}")
    return _emit(loop, body, best)


def _without_lets(body: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
    """The body with its scalars put in by value, since both stages may need them; None when one reads memory."""
    lets = [s for s in body if isinstance(s, Let)]
    if any(isinstance(n, Load) for s in lets for n in walk(s.value)):
        return None
    rest = tuple(s for s in body if not isinstance(s, Let))
    for let in reversed(lets):
        rest = _with_values(rest, {let.var: let.value})
    return rest


def _with_values(body: tuple[Stmt, ...], values: Mapping[Var, Expr]) -> tuple[Stmt, ...]:
    """The statements with values put in; what issues an operation and what completes it still name one."""
    made: dict[Op, Op] = {}
    out: list[Stmt] = []
    for s in body:
        new = substitute(s, values)
        if isinstance(s, (Issue, Complete)):
            new = replace(new, op=made.setdefault(s.op, new.op))
        out.append(new)
    return tuple(out)


def _plain(body: tuple[Stmt, ...]) -> bool:
    """Only statements whose accesses are all known, and rings that another role feeds."""
    return all(isinstance(s, (Issue, Complete, Wait, Release, Alloc)) for s in body)


def _split(loop: For, body: tuple[Stmt, ...], cut: int, target: Target) -> Split | None:
    first, second = body[:cut], body[cut:]
    for part in (first, second):
        issued = {s.op for s in part if isinstance(s, Issue)}
        completed = {s.op for s in part if isinstance(s, Complete)}
        waits = {s.channel for s in part if isinstance(s, Wait)}
        releases = {s.channel for s in part if isinstance(s, Release)}
        products = sum(isinstance(s, Issue) and is_async(s.impl) for s in part)
        if not products or waits != releases or not completed <= issued or _unfinished(part):
            return None
    ahead = _with_values(first, {loop.var: loop.var + loop.step})
    trip = nodes((*second, *ahead), target)
    return Split(cut, tuple(trip), scheduled(trip))


def _unfinished(part: tuple[Stmt, ...]) -> bool:
    completed = {s.op for s in part if isinstance(s, Complete)}
    return any(isinstance(s, Issue) and s.impl.completion != "bytes" and s.op not in completed for s in part)


def _emit(loop: For, body: tuple[Stmt, ...], split: Split) -> list[Stmt]:
    """First trip's stage 0, the steady trips, last trip's stage 1; nothing when there is no trip."""
    allocs = [s for s in body if isinstance(s, Alloc)]
    steady = _with_pending([split.trip[i].stmt for i in split.order.sequence])
    last = loop.stop - loop.step
    begin = _with_values(body[: split.cut], {loop.var: loop.start})
    end = _with_values(body[split.cut :], {loop.var: _last_trip(loop)})
    inner = replace(loop, stop=last, body=tuple(s for s in steady if not isinstance(s, Alloc)), kind="serial")
    work = (*(s for s in begin if not isinstance(s, Alloc)), inner, *(s for s in end if not isinstance(s, Alloc)))
    return [*allocs, If(compare("lt", loop.start, loop.stop), work, loc=loop.loc)]


def _last_trip(loop: For) -> Expr:
    """The loop variable's value in the last trip."""
    trips = (loop.stop - loop.start + loop.step - 1) // loop.step
    return loop.start + (trips - 1) * loop.step


def _with_pending(trip: list[Stmt]) -> list[Stmt]:
    """Each completion lets the groups stay open that were issued after its own."""
    out: list[Stmt] = []
    issued: list[object] = []
    for s in trip:
        if isinstance(s, Issue) and is_async(s.impl):
            issued.append(s.op)
        if isinstance(s, Complete) and is_async(s.impl):
            out.append(replace(s, pending=len(issued) - 1 - issued.index(s.op)))
        else:
            out.append(s)
    return out
