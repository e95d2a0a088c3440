"""T.serial, T.unroll, T.vectorized, T.Parallel, T.grid: what `for` runs over in a kernel."""

from __future__ import annotations

from typing import Any

from .builder import current
from .faults import fault, shown
from .layouts import check_layout
from .loopbodies import Loop, ranged


def serial(start: Any, stop: Any = None, step: Any = None, *, annotations: Any = None) -> Loop:
    """A sequential loop; Python's `range` in a `for` statement means the same."""
    return ranged("serial", start, stop, step, {"annotations": annotations})


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
    return ranged("unroll", start, stop, step, hints)


def vectorized(start: Any, stop: Any = None, *, annotations: Any = None) -> Loop:
    """A loop whose iterations are the lanes of one vector access."""
    return ranged("vectorized", start, stop, None, {"annotations": annotations})


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
        ranged("Parallel", extent, None, None, {})
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
        ranged("grid", extent, None, None, {})
    return Loop("grid", tuple((0, e, 1) for e in extents))


def parallel(start: Any, stop: Any = None, *, annotations: Any = None) -> Loop:
    """A loop whose iterations are independent: T.Parallel in a kernel, otherwise (or from another start than 0) run in
    order."""
    builder = current()
    if builder is not None and builder.launch is not None and (stop is None or (isinstance(start, int) and start == 0)):
        return Parallel(start if stop is None else stop, annotations=annotations)
    return ranged("serial", start, stop, None, {"annotations": annotations})


Serial, Unroll, Vectorized = serial, unroll, vectorized
