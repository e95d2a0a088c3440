"""Loops, branches and exits, compiled to generators: a role may stop inside them to wait for another.

Where a condition or a trip count differs between points, the body runs for the active ones under a mask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SimulationError, TileError
from ...ir.stmt import Break, Continue, For, If, Stmt, While
from . import affine
from .affine import Affine
from .arithmetic import dense
from .state import LoopFrame, State, both, negate, simple
from .taint import refuse

if TYPE_CHECKING:
    from .program import Program

Body = Callable[[State], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class Step:
    """One compiled statement. `waits`: fn is a generator function."""

    fn: Callable[[State], Any]
    waits: bool
    exits: bool  # may break or continue
    stmt: Stmt


def has_exit(body: tuple[Stmt, ...]) -> bool:
    """Whether `body` leaves the loop it belongs to."""
    for s in body:
        if isinstance(s, (Break, Continue)):
            return True
        if isinstance(s, If) and (has_exit(s.then) or has_exit(s.orelse)):
            return True
    return False


def sequence(steps: list[Step]) -> Body:
    """Runs the steps in order for the active points."""
    count = len(steps)
    loc = steps[0].stmt.loc if steps else None

    def run(st: State) -> Iterator[Any]:
        st.budget.take(count, loc)
        for step in steps:
            try:
                if step.waits:
                    yield from step.fn(st)
                else:
                    step.fn(st)
            except TileError as error:
                raise error.at(step.stmt.loc) from None
            if step.exits and st.loop is not None:
                st.mask = both(st.mask, negate(st.loop.skipped))
                if st.mask is False:
                    return

    return run


def compile_if(s: If, depth: int, program: Program) -> Body:
    """Both branches run, each for the points that take it."""
    cond, tainted = program.expression(s.cond, depth), program.taint(s.cond, depth)
    then, orelse = program.body(s.then, depth), program.body(s.orelse, depth)

    def run(st: State) -> Iterator[Any]:
        refuse(st, tainted, s.cond, "a branch", s.loc)
        c = cond(st)
        if not isinstance(c, np.ndarray):
            yield from (then if c else orelse)(st)
            return
        saved = st.mask
        for where, body in ((c, then), (~c, orelse)):
            st.mask = both(saved, where)
            if st.mask is not False:
                yield from body(st)
        st.mask = saved

    return run


def compile_exit(s: Stmt, depth: int, program: Program) -> Callable[[State], None]:
    """break or continue, for the active points."""
    leaves = isinstance(s, Break)

    def run(st: State) -> None:
        frame = st.loop
        if frame is None:
            raise SimulationError("break or continue outside a loop", rule="they belong to a serial loop", loc=s.loc)
        frame.skipped = _join(frame.skipped, st.mask)
        if leaves:
            frame.broken = _join(frame.broken, st.mask)

    return run


def _join(a: Any, b: Any) -> Any:
    if a is True or b is True:
        return True
    return b if a is False else (a if b is False else simple(np.logical_or(a, b)))


def compile_for(s: For, depth: int, program: Program) -> Body:
    """A counted loop; trip counts may differ between points."""
    bounds = [program.expression(e, depth) for e in (s.start, s.stop, s.step)]
    checks = [(program.taint(e, depth), e) for e in (s.start, s.stop, s.step)]
    program.depths[s.var] = depth
    body, exits, var, dtype, loc = program.body(s.body, depth), has_exit(s.body), s.var, s.var.dtype, s.loc

    def run(st: State) -> Iterator[Any]:
        for check, e in checks:
            refuse(st, check, e, "a loop bound", loc)
        start, stop, step = (b(st) for b in bounds)
        uniform = type(start) is int and type(stop) is int and type(step) is int
        if np.any(np.equal(0 if isinstance(step, Affine) else step, 0)):
            raise SimulationError(
                "the loop's step is 0", rule="a step is not 0", fix="check the value of the step", loc=loc
            )
        if not uniform:
            yield from _varying(st, start, stop, step)
        elif exits:
            yield from _leaving(st, range(start, stop, step))
        else:
            for value in range(start, stop, step):
                st.vars[var] = value
                yield from body(st)

    def _leaving(st: State, values: Any) -> Iterator[Any]:
        with _Loop(st) as loop:
            for value in values:
                if not loop.trip():
                    break
                st.vars[var] = value
                yield from body(st)

    def _varying(st: State, start: Any, stop: Any, step: Any) -> Iterator[Any]:
        first, last, by = (np.asarray(dense(v, dtype), np.int64) for v in (start, stop, step))
        trips = np.maximum((last - first + by - np.sign(by)) // by, 0)
        most = int(
            np.broadcast_to(trips, np.broadcast_shapes(trips.shape, np.shape(st.mask)))[
                st.active(np.broadcast_shapes(trips.shape, np.shape(st.mask)))
            ].max(initial=0)
        )
        with _Loop(st) as loop:
            for trip in range(most):
                if not loop.trip(trips > trip if (trips <= trip).any() else True):
                    break
                plain = type(step) is int and not isinstance(start, np.ndarray)
                st.vars[var] = affine.add(start, trip * step) if plain else (first + trip * by).astype(dtype.numpy)
                yield from body(st)

    return run


class _Loop:
    """The mask and the exits of a loop while it runs."""

    def __init__(self, st: State) -> None:
        self.st, self.saved, self.outer = st, st.mask, st.loop
        self.frame = LoopFrame()

    def __enter__(self) -> _Loop:
        return self

    def trip(self, alive: Any = True) -> bool:
        """Prepares the next trip for the points that are `alive` and have not left; whether there are any."""
        st, frame = self.st, self.frame
        frame.skipped = frame.broken
        st.loop = frame
        st.mask = both(both(self.saved, alive), negate(frame.broken))
        return st.mask is not False

    def __exit__(self, *_: object) -> None:
        self.st.mask, self.st.loop = self.saved, self.outer


def compile_while(s: While, depth: int, program: Program) -> Body:
    """Runs while the condition holds for any active point."""
    cond, tainted = program.expression(s.cond, depth), program.taint(s.cond, depth)
    body = program.body(s.body, depth)

    def run(st: State) -> Iterator[Any]:
        with _Loop(st) as loop:
            alive: Any = True
            while loop.trip(alive):
                st.budget.take(1, s.loc)
                refuse(st, tainted, s.cond, "a branch", s.loc)
                alive = both(st.mask, _truth(cond(st)))
                if not loop.trip(alive):
                    break
                yield from body(st)

    return run


def _truth(value: Any) -> Any:
    return simple(value) if isinstance(value, np.ndarray) else bool(value)
