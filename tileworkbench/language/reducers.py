"""T.alloc_reducer and what works on it: elements that all iterations of parallel loops combine into, from
T.reducer_init to T.finalize_reducer. A reducer is an ordinary fragment; `reducerloops` says what its updates become.

TileLang's older form is taken too: T.clear, `r[i] += x` in the loop, T.finalize_reducer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..ir.expr import Buffer, Expr, Load
from ..ir.stmt import Stmt, Store, whole
from ..ops.copy import Copy
from ..ops.fill import Fill
from ..ops.reduction import combine, identity
from .alloc import alloc_fragment
from .builder import Frame, require
from .faults import fault, shown
from .fitted import fitted
from .remarks import remarks
from .tileops import check_batch

KINDS = ("sum", "max", "min", "bitand", "bitor", "bitxor")


@dataclass(eq=False)
class Reducer:
    """How a reducer combines, where it began to gather, and what is still to be combined into it."""

    op: str
    start: Stmt | None = None  # what gave the elements their first value
    scope: tuple[Frame, ...] = ()  # the bodies around `start`
    gathering: bool = False  # T.reducer_init was said, T.finalize_reducer not yet
    pending: list[Stmt] = field(default_factory=list)

    @property
    def partial(self) -> bool:
        """Whether its elements are not the result yet."""
        return self.gathering or bool(self.pending)

    def begin(self, start: Stmt, frames: list[Frame]) -> None:
        self.start, self.scope, self.pending = start, tuple(frames), []

    def loops_since(self, frames: list[Frame]) -> int:
        """Run-time loops that are open in `frames` and were not where it began."""
        return sum(f.kind in ("for", "while") for f in frames[len(self.scope) :])

    def reaches(self, frames: list[Frame]) -> bool:
        return self.start is not None and tuple(frames[: len(self.scope)]) == self.scope


def alloc_reducer(shape: Any, dtype: Any, op: str = "sum", replication: str | None = None) -> Buffer:
    """A tile whose elements gather contributions of all threads by `op` (sum, max, min, bitand, bitor, bitxor).
    `replication` is accepted for TileLang's sake."""
    if op not in KINDS:
        raise fault(f"T.alloc_reducer: op={shown(op)}", f"it is one of {', '.join(KINDS)}", 'op="sum"')
    made = alloc_fragment(shape, dtype)
    if op.startswith("bit") and made.dtype.kind not in ("int", "uint", "bool"):
        raise fault(f"T.alloc_reducer: op={shown(op)} of {made.dtype}", "it takes an integer dtype", 'dtype="int32"')
    require("T.alloc_reducer").reduced[made] = Reducer(op)
    return made


def reducer_init(reducer: Any, init: Any = None) -> None:
    """Begins to gather: every element becomes `init`, by default the value that changes nothing."""
    builder = require("T.reducer_init")
    state = _state("T.reducer_init", reducer)
    if state.gathering:
        raise fault(
            f"double T.reducer_init of `{reducer.name}`", "what was gathered is finalised before the next one",
            f"T.finalize_reducer({reducer.name}, dst) before it",
        )  # fmt: skip
    if isinstance(init, Expr) and init.dtype != reducer.dtype:
        raise fault(
            f"the first value's dtype {init.dtype} does not match reducer `{reducer.name}` of {reducer.dtype}",
            "the value becomes the elements as it is", f'T.cast(value, "{reducer.dtype}")',
        )  # fmt: skip
    first = identity(state.op, reducer.dtype) if init is None else fitted(init, reducer)
    start = Fill(whole(reducer), first, loc=builder.here)
    builder.emit(start)
    state.begin(start, builder.frames)
    state.gathering = True


def reducer_update(target: Any, value: Any) -> None:
    """Combines `value` into an element of a reducer, in T.Parallel."""
    builder = require("T.reducer_update")
    if not isinstance(target, Load):
        raise fault("T.reducer_update of no element", "it takes an element and a value", "T.reducer_update(r[i], x)")
    state = _state("T.reducer_update", target.buffer)
    name = target.buffer.name
    if not state.gathering:
        raise fault(f"an update of `{name}` before T.reducer_init", "it gives the elements their first value",
                    f"T.reducer_init({name}) before the loop")  # fmt: skip
    if builder.within("parallel") is None:
        raise fault(f"an update of the reducer `{name}` outside any T.Parallel",
                    "each iteration of a parallel loop contributes once, whichever thread runs it",
                    "for i in T.Parallel(1): around it")  # fmt: skip
    made = combine(state.op, target, fitted(value, target.buffer), False)
    builder.emit(Store(target.buffer, target.indices, made, loc=builder.here))


def finalize_reducer(reducer: Any, dst: Any = None, batch: int = 1, annotations: Any = None) -> None:
    """From here on the reducer holds its result in every thread that asks; `dst` gets a copy. `batch` is T.reduce's."""
    builder = require("T.finalize_reducer")
    state = _state("T.finalize_reducer", reducer)
    check_batch("T.finalize_reducer", remarks(annotations).get("batch", 1) if batch == 1 else batch, whole(reducer))
    if state.start is not None and (not state.reaches(builder.frames) or state.loops_since(builder.frames)):
        raise fault(
            f"T.finalize_reducer of `{reducer.name}` is not in the scope of its T.reducer_init",
            "what one T.reducer_init began is finalised once, in the same body or in a branch of it",
            "put both into the same loop",
        )
    state.gathering, pending, state.pending = False, state.pending, []
    for statement in pending:
        builder.emit(statement)
    if dst is not None:
        builder.emit(Copy(whole(reducer), whole(dst), loc=builder.here))


def _state(what: str, reducer: Any) -> Reducer:
    state: Reducer | None = require(what).reduced.get(reducer) if isinstance(reducer, Buffer) else None
    if state is None:
        raise fault(
            f"{what} of something else than a reducer",
            "it works on what T.alloc_reducer made",
            "make the tile by T.alloc_reducer(shape, dtype, op)",
        )
    return state


def check_finalised(reduced: dict[Buffer, Reducer]) -> None:
    """LanguageError for a reducer that began to gather and that nothing finalised."""
    for buffer, state in reduced.items():
        if state.partial:
            raise fault(
                f"the reducer `{buffer.name}` is never finalized after this",
                "the threads' contributions are combined by T.finalize_reducer",
                f"T.finalize_reducer({buffer.name}, dst)",
                state.start.loc if state.start is not None else buffer.loc,
            )
