"""Rows between the lanes of a warp: Shuffle, Vote and Match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.instr import Match, Shuffle, Vote
from .faults import fault
from .loadstore import registers
from .memory import predicate
from .program import Program
from .warp import Warp

Array = Any


def _sources(kind: str, lanes: Array, operand: Any, width: int) -> Array:
    """The lane each lane reads; those that would leave their group read themselves, as the hardware does."""
    base, inside = lanes // width * width, lanes % width
    wanted: Any = np.asarray(operand) % width
    if kind == "xor":
        wanted = inside ^ operand
    elif kind != "idx":
        wanted = inside - operand if kind == "up" else inside + operand
    legal = (wanted >= 0) & (wanted < width)
    return np.where(legal, base + wanted, lanes).astype(np.int64)


def shuffle(p: Program, s: Shuffle) -> Callable[[Warp], None]:
    """Shuffle: values and their definedness from another lane; one that does not execute gives undefined ones."""
    if s.kind not in ("idx", "xor", "up", "down"):
        raise InternalError(f"no shuffle of kind {s.kind!r}", loc=s.loc)
    source, target, operand = registers(p, s.src, False), registers(p, s.dst, True), p.scope.value(s.lane)
    count = s.src.count

    def run(w: Warp) -> None:
        rf, first = source(w)
        out, into = target(w)
        lanes = _sources(s.kind, w.lane_ids, operand.read(w), s.width)
        values = rf.data[first : first + count][:, lanes]
        known = rf.defined[first : first + count][:, lanes] & w.mask[lanes]
        if w.full:
            out.data[into : into + count] = values
            out.defined[into : into + count] = known
        else:
            np.copyto(out.data[into : into + count], values, where=w.mask)
            np.copyto(out.defined[into : into + count], known, where=w.mask)

    return run


def vote(p: Program, s: Vote) -> Callable[[Warp], None]:
    """Vote by a whole warp; lanes that do not exist neither count nor object."""
    if s.kind not in ("ballot", "any", "all"):
        raise InternalError(f"no vote of kind {s.kind!r}", loc=s.loc)
    target, holds = registers(p, s.dst, True), predicate(p, s.pred)

    def run(w: Warp) -> None:
        if not w.full:
            raise fault(w, "divergent", "a vote by part of a warp", rule="all lanes of a warp vote together")
        out, into = target(w)
        chosen = np.broadcast_to(np.asarray(holds(w)), w.mask.shape) & w.mask
        if s.kind == "ballot":
            value: Any = sum(1 << int(lane) for lane in np.flatnonzero(chosen))
        else:
            value = bool(chosen.any()) if s.kind == "any" else bool(chosen[w.alive].all())
        out.data[into] = value
        out.defined[into] = True

    return run


def match(p: Program, s: Match) -> Callable[[Warp], None]:
    """Match by a whole warp; lanes that do not exist neither count nor object."""
    if s.kind not in ("any", "all"):
        raise InternalError(f"no match of kind {s.kind!r}", loc=s.loc)
    source, target = registers(p, s.src, False), registers(p, s.dst, True)

    def run(w: Warp) -> None:
        if not w.full:
            raise fault(w, "divergent", "a match by part of a warp", rule="all lanes of a warp compare together")
        rf, first = source(w)
        out, into = target(w)
        bits = np.ascontiguousarray(rf.data[first]).view(f"u{rf.data.dtype.itemsize}")
        alike = (bits[:, None] == bits[None, :]) & w.alive[None, :]
        lanes = np.uint64(1) << np.arange(len(bits), dtype=np.uint64)
        if s.kind == "any":
            out.data[into] = alike.astype(np.uint64) @ lanes
        else:
            out.data[into] = lanes[w.alive].sum() if alike[w.alive][:, w.alive].all() else 0
        out.defined[into] = rf.defined[first][w.alive].all()

    return run
