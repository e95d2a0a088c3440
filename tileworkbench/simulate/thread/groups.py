"""Asynchronous work counted by groups: cp.async, bulk stores and wgmma share commit and wait.

Each lane has its own list of groups (PTX: groups are per thread), so that a commit or wait under a mask is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.instr import CommitGroup, WaitGroup
from .program import Program
from .warp import Warp

Array = Any


@dataclass(slots=True, eq=False)
class GroupWork:
    """One piece of work of a warp. `finish(lanes, reads_only)` lands it if need be and hands its accesses over to the
    lanes that waited; `lanes` are those that have not waited yet."""

    lanes: Array
    finish: Callable[[Array, bool], None]
    stmt: Any
    read_waited: bool = False


@dataclass(slots=True, eq=False)
class Group:
    """Works committed together by `mask`'s lanes; `waiting` are those lanes that have not waited for it."""

    mask: Array
    waiting: Array
    works: list[GroupWork] = field(default_factory=list)


def add(w: Warp, engine: str, work: GroupWork) -> None:
    w.open[engine].append(work)


def commit(p: Program, s: CommitGroup) -> Callable[[Warp], None]:
    """CommitGroup: the executing lanes' open work becomes a group; an empty one counts too."""
    engine = _engine(s)

    def run(w: Warp) -> None:
        group = Group(w.mask.copy(), w.mask.copy())
        kept = []
        for work in w.open[engine]:
            if (work.lanes & w.mask).any():
                group.works.append(work)
            else:
                kept.append(work)
        w.open[engine] = kept
        w.groups[engine].append(group)

    return run


def wait(p: Program, s: WaitGroup) -> Callable[[Warp], None]:
    """WaitGroup: all but the lane's last `pending` groups land, and their accesses become the lane's own."""
    engine = _engine(s)

    def run(w: Warp) -> None:
        later = np.zeros(w.lanes, dtype=np.int32)
        for group in reversed(w.groups[engine]):
            due = group.waiting & w.mask & (later >= s.pending)
            later += group.mask
            if due.any():
                for work in group.works:
                    lanes = due & work.lanes
                    if lanes.any():
                        work.finish(lanes, s.reads_only)
                if not s.reads_only:
                    group.waiting = group.waiting & ~due
        w.groups[engine] = [g for g in w.groups[engine] if g.waiting.any()]
        w.block.event(w, "wait", s)

    return run


def _engine(s: Any) -> str:
    if s.engine_of not in ("copy", "bulk", "wgmma"):
        raise InternalError(f"no groups of {s.engine_of!r}", loc=s.loc)
    return str(s.engine_of)
