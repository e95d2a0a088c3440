"""Loops under a lane mask: For, While, Break and Continue. Lanes that are through are switched off until all are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.stmt import Break, Continue, For, While
from .flow import FLOW, PLAIN, Code
from .memory import check_defined, truth
from .warp import Warp

if TYPE_CHECKING:
    from .program import Program


def for_loop(p: Program, s: For) -> Code:
    """For: bounds are read once; where they differ between lanes each lane runs its own trips."""
    slot = p.scope.slot(s.var)
    bounds = [p.scope.value(e) for e in (s.start, s.stop, s.step)]
    code = p.body(s.body)

    def trips(w: Warp) -> Iterator[None]:
        w.at = s
        for b in bounds:
            check_defined(w, b.undefined, "a bound of the loop")
        start, stop, step = (b.read(w) for b in bounds)
        saved, outer = w.mask, (w.dead, w.left)
        w.left = None
        try:
            if all(type(x) is int for x in (start, stop, step)):
                for i in range(start, stop, step):
                    w.env[slot] = i
                    if not _begin_trip(w, saved):
                        return
                    yield
            else:
                yield from _lane_trips(w, slot, saved, start, stop, step)
        finally:
            w.dead, w.left = outer
            w.set_mask(saved if w.dead is None else saved & ~w.dead)

    return _loop(code, trips)


def _begin_trip(w: Warp, mask: Any) -> bool:
    """Switches on the lanes that have not left the loop; counts the trip."""
    w.block.tick(w)
    w.dead = None
    if w.left is not None:
        mask = mask & ~w.left
        w.dead = w.left.copy()
    if mask is not w.mask:
        w.set_mask(mask)
    return w.left is None or w.any


def _lane_trips(w: Warp, slot: int, saved: Any, start: Any, stop: Any, step: Any) -> Iterator[None]:
    """Trips of a loop whose bounds differ between lanes: lanes that are through are switched off."""
    i = np.broadcast_to(np.asarray(start), saved.shape).astype(np.int64)
    up = np.asarray(step) > 0
    while True:
        inside = saved & np.where(up, i < stop, i > stop)
        if not inside.any():
            return
        w.env[slot] = i.astype(np.int32)
        if not _begin_trip(w, inside):
            return
        yield
        i = i + step


def while_loop(p: Program, s: While) -> Code:
    """While: lanes whose condition fails wait for the others."""
    cond, code = p.scope.value(s.cond), p.body(s.body)

    def trips(w: Warp) -> Iterator[None]:
        saved, outer = w.mask, (w.dead, w.left)
        w.left, inside = None, saved
        try:
            while _begin_trip(w, inside):
                w.at = s
                check_defined(w, cond.undefined, "the condition of a loop")
                holds = truth(cond.read(w))
                if not isinstance(holds, np.ndarray):
                    if not holds:
                        return
                else:
                    inside = inside & holds if w.left is None else inside & holds & ~w.left
                    if not inside.any():
                        return
                    w.set_mask(inside)
                yield
        finally:
            w.dead, w.left = outer
            w.set_mask(saved if w.dead is None else saved & ~w.dead)

    return _loop(code, trips)


def _loop(code: Code, trips: Callable[[Warp], Iterator[None]]) -> Code:
    kind, fn = code
    if kind == PLAIN:

        def plain(w: Warp) -> None:
            for _ in trips(w):
                fn(w)

        return PLAIN, plain

    def flow(w: Warp) -> Iterator[Any]:
        for _ in trips(w):
            yield from fn(w)

    return FLOW, flow


def break_loop(p: Program, s: Break) -> Code:
    """Break: the executing lanes are done with the innermost loop."""

    def run(w: Warp) -> None:
        w.left = w.mask.copy() if w.left is None else w.left | w.mask
        _continue_lanes(w)

    return PLAIN, run


def continue_loop(p: Program, s: Continue) -> Code:
    return PLAIN, _continue_lanes


def _continue_lanes(w: Warp) -> None:
    w.dead = w.mask.copy() if w.dead is None else w.dead | w.mask
    w.set_mask(np.zeros(w.lanes, dtype=bool))
