"""Copies of fragments that stage them for other threads: made once where a loop would make them in every trip."""

from __future__ import annotations

from ..ir.effects import accesses
from ..ir.node import replace, walk
from ..ir.planned import Complete, Issue
from ..ir.region import is_whole, root
from ..ir.stmt import Alloc, Break, Continue, For, Stmt
from ..ops.copy import Copy


def once(loop: For) -> tuple[Stmt, ...]:
    """The loop, after the staging copies of fragments that it does not change. Only where it has trips for certain:
    before others the fragment may be undefined."""
    leaves = any(isinstance(n, (Break, Continue)) for n in walk(loop.body))
    if loop.kind not in ("serial", "unroll") or leaves or (loop.trips or 0) < 1:
        return (loop,)
    before: list[Stmt] = []
    body = list(loop.body)
    at = 0
    while at + 2 < len(body):
        found = body[at : at + 3]
        rest = (*body[:at], *body[at + 3 :])
        if _stages(found) and _left_alone(found[1], rest):
            before += found
            body = list(rest)
        else:
            at += 1
    return (*before, replace(loop, body=tuple(body))) if before else (loop,)


def _stages(found: list[Stmt]) -> bool:
    """A new shared tile, and the copy of a whole fragment to it."""
    tile, issue, done = found
    if not (isinstance(tile, Alloc) and isinstance(issue, Issue) and isinstance(done, Complete)):
        return False
    op = issue.op
    if not isinstance(op, Copy) or done.op is not op or tile.buffer.space != "shared":
        return False
    fresh = op.dst.buffer is tile.buffer and op.src.buffer.space == "fragment"
    return fresh and is_whole(op.dst) and is_whole(op.src)


def _left_alone(issue: Stmt, rest: tuple[Stmt, ...]) -> bool:
    """Nothing else of the loop writes the fragment or its tile."""
    op = issue.op  # type: ignore[attr-defined]
    kept = {root(op.src.buffer), root(op.dst.buffer)}
    return not any(a.writes and root(a.buffer) in kept for a in accesses(rest))
