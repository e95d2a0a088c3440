"""Loops on their way into the kernel: what `for` runs over, until its body has been read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import Loc
from ..ir.expr import Expr, Var, as_expr
from ..ir.node import walk
from ..ir.stmt import For, Stmt
from ..ops.parallel import Parallel as ParallelOp
from ..options import options
from .builder import Builder
from .faults import fault, misnested, shown
from .reducerloops import without_reducers

Keep = Callable[[Builder, str, Any], Any]


@dataclass(eq=False)
class Loop:
    """A loop before its body is known. `loop_kind` is the user's word, `ranges` one (start, stop, step) an index."""

    loop_kind: str
    ranges: tuple[tuple[Any, Any, Any], ...]
    hints: tuple[tuple[str, Any], ...] = field(default=())

    @property
    def count(self) -> int:
        return len(self.ranges)

    def run(self, builder: Builder, names: tuple[str, ...], loc: Loc, keep: Keep) -> Iterator[tuple[Var, ...]]:
        """Opens the frames, yields the variables once, closes the frames and emits the loop."""
        if self.loop_kind == "Parallel":
            yield from self._parallel(builder, names, loc, keep)
        else:
            yield from self._nested(builder, names, loc, keep, ())

    def _nested(
        self, builder: Builder, names: tuple[str, ...], loc: Loc, keep: Keep, outer: tuple[Var, ...]
    ) -> Iterator[tuple[Var, ...]]:
        if self.loop_kind == "Pipelined" and builder.within("parallel") is not None:
            raise misnested(
                "T.Pipelined inside T.Parallel",
                "a pipeline moves tiles, a parallel loop handles elements",
                "exchange the loops, or use T.serial",
                loc,
            )
        depth = len(outer)
        (start, stop, step), name = self.ranges[depth], names[depth]
        with builder.inside("for", self.loop_kind) as frame:
            var = self._index(builder, name, start, stop, loc, keep)
            if depth + 1 < len(names):
                yield from self._nested(builder, names, loc, keep, (*outer, var))
            else:
                yield (*outer, var)
        kind = _KINDS[self.loop_kind]
        made = For(var, as_index(start), as_index(stop), as_index(step), tuple(frame.body), kind, self.hints, loc=loc)
        if made.trips != 0:
            builder.emit(self.closed(builder, made))

    def closed(self, builder: Builder, loop: For) -> For:
        """The loop as it goes into the kernel, now that its body is known."""
        if loop.kind == "unroll":
            check_unrolled(loop)
        return loop

    def _parallel(self, builder: Builder, names: tuple[str, ...], loc: Loc, keep: Keep) -> Iterator[tuple[Var, ...]]:
        inner = builder.within("parallel") is not None
        with builder.inside("parallel", "Parallel") as frame:
            vars = tuple(
                self._index(builder, name, start, stop, loc, keep)
                for name, (start, stop, _) in zip(names, self.ranges, strict=True)
            )
            yield vars
        extents = tuple(stop for _, stop, _ in self.ranges)
        made = merged(ParallelOp(vars, extents, tuple(frame.body), self.hints, loc=loc))
        if inner:  # the loop around it takes it up
            builder.emit(made)
            return
        for statement in without_reducers(made, builder):
            builder.emit(statement, gathers=statement is not made)

    def _index(self, builder: Builder, name: str, start: Any, stop: Any, loc: Loc, keep: Keep) -> Var:
        dtypes = [v.dtype for v in (start, stop) if isinstance(v, Expr)]
        wide = next((d for d in dtypes if d.bits == 64), None)
        var = Var(builder.unique(name), dtype=wide, loc=loc) if wide is not None else Var(builder.unique(name), loc=loc)
        builder.define(var)
        keep(builder, name, var)
        return var


def merged(loop: ParallelOp) -> ParallelOp:
    """One loop of a loop that holds nothing but another; LanguageError for any other loop inside it."""
    inside = next((n for n in walk(loop.body) if isinstance(n, ParallelOp)), None)
    if inside is None:
        return loop
    sizes = [e for e in inside.extents if isinstance(e, Expr)]
    sized_within = any(isinstance(n, Var) and n in loop.vars for n in walk(tuple(sizes)))
    if loop.body != (inside,) or sized_within:
        raise misnested(
            "T.Parallel inside T.Parallel",
            "a parallel loop spreads elements over the threads once: two are one loop only where the outer one holds "
            "the inner one alone",
            "give one T.Parallel all the extents, or use T.serial inside",
            inside.loc,
        )
    hints = {**dict(loop.hints), **dict(inside.hints)}
    return ParallelOp(
        (*loop.vars, *inside.vars), (*loop.extents, *inside.extents), inside.body, tuple(hints.items()), loc=loop.loc
    )


_KINDS = {"serial": "serial", "unroll": "unroll", "vectorized": "vector", "Pipelined": "pipelined", "grid": "serial"}


def as_index(value: Any) -> Expr:
    """A loop bound as an expression; LanguageError for a float."""
    if isinstance(value, Expr) and not value.dtype.is_int:
        raise fault(f"a loop bound is of type {value.dtype}", "loop bounds are integers", "use `//` or T.ceildiv")
    return as_expr(value)


def check_unrolled(loop: For) -> None:
    """An unrolled loop may not become more statements than the option allows."""
    trips = loop.trips
    if trips is None:
        return
    size = sum(isinstance(n, Stmt) for n in walk(loop.body))
    if trips * size > options.unroll_limit:
        raise fault(
            f"T.unroll makes {trips} × {size} = {trips * size} statements",
            f"an unrolled loop may become {options.unroll_limit} statements (option `unroll_limit`)",
            "use T.serial, or unroll an inner part of the loop",
            loop.loc,
        )


def ranged(kind: str, start: Any, stop: Any, step: Any, hints: dict[str, Any], made: type[Loop] | None = None) -> Loop:
    """A loop over one range, its bounds checked; `made`: the class of the loop."""
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    for value in (start, stop, step):
        if isinstance(value, Expr):
            as_index(value)
        elif not hasattr(value, "__index__"):
            raise fault(f"T.{kind}: a bound is {shown(value)}", "loop bounds are integers", "use `//` or T.ceildiv")
    if isinstance(step, int) and step == 0:
        raise fault(f"T.{kind}: the step is 0", "the step of a loop is not 0", "use a positive or negative step")
    return (made or Loop)(kind, ((start, stop, step),), tuple((k, v) for k, v in hints.items() if v is not None))
