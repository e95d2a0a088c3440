"""T.serial, T.unroll, T.vectorized, T.Parallel, T.Pipelined, T.grid: what `for` runs over in a kernel."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Expr
from .builder import current
from .faults import fault, shown
from .layouts import check_layout
from .loopbodies import Loop, ThreadLoop, as_index
from .remarks import remarks


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
