"""T.serial, T.unroll, T.vectorized, T.Parallel, T.Pipelined, T.grid: what `for` runs over in a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import Loc
from ..ir.expr import Const, Expr, Var, as_expr
from ..ir.node import walk
from ..ir.stmt import For, Stmt
from ..ops.parallel import Parallel as ParallelOp
from ..options import options
from .builder import Builder, current
from .faults import fault, misnested, shown
from .layouts import check_layout
from .reducerloops import without_reducers
from .remarks import remarks

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
        if kind == "unroll":
            check_unrolled(made)
        if constant_trips(made) != 0:
            builder.emit(made)

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


def constant_trips(loop: For) -> int | None:
    """How often a loop runs; None when that is known only at run time."""
    bounds = (loop.start, loop.stop, loop.step)
    if not all(isinstance(b, Const) for b in bounds):
        return None
    return len(range(*(int(b.value) for b in bounds)))  # type: ignore[attr-defined]


def check_unrolled(loop: For) -> None:
    """An unrolled loop may not become more statements than the option allows."""
    trips = constant_trips(loop)
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


def check_schedule(**given: Any) -> None:
    """A pipeline's schedule, where the user writes one: lists of ints, one entry a statement."""
    for word, value in given.items():
        if value is not None and not _numbers(value):
            raise fault(
                f"T.Pipelined: {word}={shown(value)}",
                "order, stage, sync and group are lists of ints, one entry a statement of the loop",
                f"leave {word} out: the compiler schedules the loop",
            )
    order, stage = given["order"], given["stage"]
    if order is not None and stage is not None and len(order) != len(stage):
        raise fault(
            f"T.Pipelined: order has {len(order)} entries, stage {len(stage)}",
            "order, stage, sync and group are lists of ints, one entry a statement of the loop",
            "give both as many entries as the loop has statements",
        )


def _numbers(value: Any) -> bool:
    """A list of ints, or of such lists."""
    return isinstance(value, list | tuple) and all(isinstance(v, int) or _numbers(v) for v in value)


def _range(kind: str, start: Any, stop: Any, step: Any, hints: dict[str, Any]) -> Loop:
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
    return Loop(kind, ((start, stop, step),), tuple((k, v) for k, v in hints.items() if v is not None))


def serial(start: Any, stop: Any = None, step: Any = None, *, annotations: Any = None) -> Loop:
    """A sequential loop; Python's `range` in a `for` statement means the same."""
    return _range("serial", start, stop, step, {"annotations": annotations})


def unroll(
    start: Any,
    stop: Any = None,
    step: Any = None,
    *,
    explicit: bool = False,
    unroll_factor: int | None = None,
    annotations: Any = None,
) -> Loop:
    """A loop that the compiler unrolls."""
    if unroll_factor is not None and (not isinstance(unroll_factor, int) or unroll_factor < 1):
        raise fault(
            f"T.unroll: unroll_factor={shown(unroll_factor)}", "it is an int of 1 or more, known while compiling", "4"
        )
    hints = {"explicit": explicit or None, "unroll_factor": unroll_factor, "annotations": annotations}
    return _range("unroll", start, stop, step, hints)


def vectorized(start: Any, stop: Any = None, *, annotations: Any = None) -> Loop:
    """A loop whose iterations are the lanes of one vector access."""
    return _range("vectorized", start, stop, None, {"annotations": annotations})


def Pipelined(
    start: Any,
    stop: Any = None,
    num_stages: int = 0,
    order: Any = None,
    stage: Any = None,
    sync: Any = None,
    group: Any = None,
    annotations: Any = None,
) -> Loop:
    """A serial loop whose copies run `num_stages` iterations ahead of their use; the meaning is the serial loop's."""
    if not isinstance(num_stages, int) or isinstance(num_stages, bool) or num_stages < 0:
        raise fault(
            f"T.Pipelined: num_stages is {shown(num_stages)}",
            "num_stages is an int ≥ 0",
            "0 means no software pipeline",
        )
    check_schedule(order=order, stage=stage, sync=sync, group=group)
    hints = {"num_stages": num_stages, "order": order, "stage": stage, "sync": sync, "group": group}
    return _range("Pipelined", start, stop, None, {**hints, "annotations": annotations})


def Parallel(
    *extents: Any,
    coalesced_width: int | None = None,
    loop_layout: Any = None,
    prefer_async: bool | None = None,
    annotations: Any = None,
) -> Loop:
    """An element loop over `extents` spread over the block's threads; its iterations are independent."""
    if not extents:
        raise fault("T.Parallel without extents", "a parallel loop has at least one extent", "T.Parallel(M, N)")
    hints = {
        "coalesced_width": coalesced_width,
        "loop_layout": loop_layout,
        "prefer_async": prefer_async,
        "annotations": annotations,
    }
    for extent in extents:
        _range("Parallel", extent, None, None, {})
        if isinstance(extent, int) and extent < 1:
            raise fault(
                f"T.Parallel: an extent is {extent}",
                "a parallel loop has at least one iteration in each dimension",
                "use an extent of 1 or more, or leave the loop out",
            )
    builder = current()
    if loop_layout is not None and builder is not None:
        check_layout(builder, "the loop", extents, loop_layout, spread=True)
    ranges = tuple((0, e, 1) for e in extents)
    return Loop("Parallel", ranges, tuple((k, v) for k, v in hints.items() if v is not None))


def grid(*extents: Any) -> Loop:
    """Nested serial loops, one an extent."""
    if not extents:
        raise fault("T.grid without extents", "a grid has at least one extent", "T.grid(M, N)")
    for extent in extents:
        _range("grid", extent, None, None, {})
    return Loop("grid", tuple((0, e, 1) for e in extents))


def parallel(start: Any, stop: Any = None, *, annotations: Any = None) -> Loop:
    """A loop whose iterations are independent: T.Parallel in a kernel, otherwise (or from another start than 0) run in
    order."""
    builder = current()
    if builder is not None and builder.launch is not None and (stop is None or (isinstance(start, int) and start == 0)):
        return Parallel(start if stop is None else stop, annotations=annotations)
    return _range("serial", start, stop, None, {"annotations": annotations})


@dataclass(eq=False)
class ThreadLoop(Loop):
    """T.thread_binding: the index is the thread's own, the body runs once."""

    dim: int = 0

    def run(self, builder: Builder, names: tuple[str, ...], loc: Loc, keep: Keep) -> Iterator[tuple[Var, ...]]:
        var = self.index(builder, loc)
        keep(builder, names[0], var)
        yield (var,)

    def index(self, builder: Builder, loc: Loc) -> Var:
        """The thread's index, which `tx = T.thread_binding(...)` names without a loop."""
        launch = builder.launch
        shape = (*launch.thread_shape, 1, 1) if launch is not None else ()
        extent = self.ranges[0][1]
        if launch is None or extent != shape[self.dim]:
            raise fault(
                f"T.thread_binding over {extent} threads",
                "it runs over all threads of one dimension of the block",
                f"use {shape[self.dim]} threads" if shape else "move it inside `with T.Kernel(...)`",
                loc,
            )
        return launch.thread_vars[self.dim]  # type: ignore[no-any-return]


def thread_binding(start: Any, stop: Any = None, thread: str = "threadIdx.x", *, annotations: Any = None) -> Loop:
    """A loop over the threads of one dimension of the block: its index is the thread's."""
    remarks(annotations)
    axes = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
    if thread not in axes or (stop is not None and start != 0):
        raise fault(
            f"T.thread_binding({shown(start)}, {shown(stop)}, thread={shown(thread)})",
            f"it starts at 0 and names one of {', '.join(axes)}",
            "use T.Kernel for blocks",
        )
    extent = start if stop is None else stop
    return ThreadLoop("thread_binding", ((0, extent, 1),), dim=axes.index(thread))


Serial, Unroll, Vectorized = serial, unroll, vectorized
