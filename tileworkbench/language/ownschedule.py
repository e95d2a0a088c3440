"""A pipeline's schedule that the user writes (`order` and `stage` of T.Pipelined): checked against what its statements
need of one another, and put into effect: the statements in the asked order, the number of versions, or a note of what
the compiler does otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from ..ir.effects import accesses
from ..ir.expr import Load, Var
from ..ir.node import replace, walk
from ..ir.region import root
from ..ir.stmt import Alloc, For, Let, Stmt
from ..ops.copy import Copy
from .faults import fault


@dataclass(frozen=True)
class Step:
    """A statement of the loop with its entries. `ahead`: a copy into a shared tile, which can run trips ahead."""

    stmt: Stmt
    order: int
    stage: int
    ahead: bool


def followed(loop: For) -> tuple[For, tuple[str, ...]]:
    """(the loop as the schedule has it, notes of what is not followed). LanguageError for a schedule that does not fit
    the statements, or that runs one before what it needs."""
    where = f"the pipeline at {loop.loc}"
    notes = [
        f"{where}: `{word}` is not followed, the compiler places meetings and groups of copies itself"
        for word in ("sync", "group")
        if loop.attr(word)
    ]
    order, stage = loop.attr("order"), loop.attr("stage")
    if not order or not stage:
        notes += [f"{where}: `{w}` alone is not followed, a schedule has both order and stage" for w in _one(loop)]
        return loop, tuple(notes)
    steps = _steps(loop, order, stage)
    _check(steps)
    made, steps, missed = _in_order(loop, steps)
    versions = loop.attr("num_stages") or _versions(steps)
    notes += [f"{where}: {reason}" for reason in (*missed, *_stages_missed(steps, versions))]
    hints = {**dict(loop.attrs), "order": [s.order for s in steps], "stage": [s.stage for s in steps]}
    hints["num_stages"] = versions
    return replace(made, attrs=tuple(hints.items())), tuple(notes)


def _one(loop: For) -> list[str]:
    return [word for word in ("order", "stage") if loop.attr(word)]


def _steps(loop: For, order: list[int], stage: list[int]) -> list[Step]:
    """The statements that have entries: all but tiles' declarations, and scalars that can be worked out anywhere in the
    trip (lists that count these too are taken)."""
    again = _replayable(loop.body)
    counted = [s for s in loop.body if not isinstance(s, Alloc)]
    scheduled = [s for s in counted if s not in again]
    if len(order) != len(scheduled) and len(order) == len(counted):
        kept = [i for i, s in enumerate(counted) if s not in again]
        order, stage = [order[i] for i in kept], [stage[i] for i in kept]
    if len(order) != len(scheduled):
        raise fault(
            f"T.Pipelined: order and stage have {len(order)} entries, the loop has {len(scheduled)} statements",
            "there is one entry a statement; scalars that read nothing which the loop writes have none",
            "give one entry a statement, or leave both out",
            loop.loc,
        )
    entries = zip(scheduled, order, stage, strict=True)
    return [Step(s, at, number, _runs_ahead(s)) for s, at, number in entries]


def _replayable(body: tuple[Stmt, ...]) -> set[Stmt]:
    """Scalars of nothing that the body writes, and of no scalar that is not such a one."""
    written = {root(a.buffer) for a in accesses(body) if a.writes}
    found: set[Stmt] = set()
    fixed: set[Var] = set()
    for s in (s for s in body if isinstance(s, Let)):
        inside = list(walk(s.value))
        reads = {root(n.buffer) for n in inside if isinstance(n, Load)}
        if reads.isdisjoint(written) and fixed.isdisjoint(n for n in inside if isinstance(n, Var)):
            found.add(s)
        else:
            fixed.add(s.var)
    return found


def _runs_ahead(s: Stmt) -> bool:
    return isinstance(s, Copy) and (s.src.buffer.space, s.dst.buffer.space) == ("global", "shared")


def _check(steps: list[Step]) -> None:
    for first, second in combinations(steps, 2):
        if first.order == second.order:
            raise fault(
                f"T.Pipelined: two statements have the same order {first.order}",
                "`order` gives each statement its own place in the trip",
                "give every statement another number",
                second.stmt.loc,
            )
        if not _feeds(first.stmt, second.stmt):
            continue
        if (first.stage, first.order) > (second.stage, second.order):
            raise fault(
                f"T.Pipelined: this statement has stage {second.stage} and order {second.order}, and needs one before "
                f"it with stage {first.stage} and order {first.order}",
                "a statement is of no earlier stage than those it needs, and in their stage comes after them",
                "give it a later stage, or in the same one a greater order",
                second.stmt.loc,
            )


def _touched(s: Stmt) -> tuple[set[object], set[object]]:
    """(read, written): tiles, tensors and scalars."""
    found = list(accesses(s))
    reads: set[object] = {root(a.buffer) for a in found if a.reads} | {n for n in walk(s) if isinstance(n, Var)}
    writes: set[object] = {root(a.buffer) for a in found if a.writes}
    return reads, writes | ({s.var} if isinstance(s, Let) else set())


def _feeds(first: Stmt, second: Stmt) -> bool:
    (_, made), (reads, writes) = _touched(first), _touched(second)
    return not made.isdisjoint(reads | writes)


def _apart(first: Stmt, second: Stmt) -> bool:
    """The two may change places."""
    return not _feeds(first, second) and not _feeds(second, first)


def _versions(steps: list[Step]) -> int:
    """One more than the trips that copies run ahead."""
    last = max(s.stage for s in steps)
    return 1 + max((last - s.stage for s in steps if s.ahead), default=0)


def _in_order(loop: For, steps: list[Step]) -> tuple[For, list[Step], list[str]]:
    """(the loop, its statements in their order now, what of the asked order it is not). In a pipeline copies and the
    other statements are ordered among themselves: whether the copies of a coming trip are issued before the others or
    after them is the planner's affair."""
    pipelined = _versions(steps) > 1
    wanted: list[Step] = list(steps)
    for kind in (True, False) if pipelined else (None,):
        slots = [i for i, s in enumerate(steps) if kind is None or s.ahead is kind]
        for i, step in zip(slots, sorted((steps[i] for i in slots), key=lambda s: s.order), strict=True):
            wanted[i] = step
    missed = []
    if pipelined and not _block(steps):
        missed.append("copies are issued together before the other statements, not between them as `order` has it")
    place = {step: i for i, step in enumerate(wanted)}
    swapped = [(a, b) for a, b in combinations(steps, 2) if place[a] > place[b]]
    if not swapped:
        return loop, steps, missed
    if not all(_apart(a.stmt, b.stmt) for a, b in swapped):
        reason = "`order` is not followed: a statement would come before one whose tile it overwrites"
        return loop, steps, [*missed, reason]
    moved = {s.stmt for s in steps}
    body = (*(s for s in loop.body if s not in moved), *(s.stmt for s in wanted))
    return replace(loop, body=body), wanted, missed


def _block(steps: list[Step]) -> bool:
    """The copies stand together in the trip, before the others or after them."""
    copies, others = [s.order for s in steps if s.ahead], [s.order for s in steps if not s.ahead]
    return not others or max(copies) < min(others) or min(copies) > max(others)


def _stages_missed(steps: list[Step], versions: int) -> list[str]:
    last, first = max(s.stage for s in steps), min(s.stage for s in steps)
    if first == last:
        return []
    copies = {s.stage for s in steps if s.ahead}
    if not copies:
        return ["`stage` is not followed: no copy into a shared tile could run ahead"]
    asked, ahead = last - min(copies), versions - 1
    missed = []
    if ahead != asked:
        missed.append(f"copies run ahead by {ahead} for num_stages={versions}, not by {asked} as `stage` has it")
    if len(copies) > 1 or {s.stage for s in steps if not s.ahead} - {last}:
        missed.append(f"all copies run ahead by {ahead}, and all else is of one stage, whatever `stage` says")
    return missed
