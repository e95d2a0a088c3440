"""Barriers under the names of their instructions, and intrinsics by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.expr import Const, Expr
from ..ir.node import Node, walk
from ..ir.stmt import Alloc
from ..ops.barrier import BarrierHeld
from . import arithmetic, barrier, mathfns, warp
from .barrier import (
    mbarrier_arrive,
    mbarrier_arrive_expect_tx,
    mbarrier_wait_parity,
    one_barrier,
    sync_grid,
)
from .builder import LOOPS, require
from .descriptors import create_tma_descriptor
from .dtypes import as_dtype
from .faults import fault, nearest, shown
from .tensorloads import tma_load


def ptx_arrive_barrier(barrier_id: Any) -> None:
    """T.mbarrier_arrive."""
    mbarrier_arrive(barrier_id)


def ptx_arrive_barrier_expect_tx(barrier_id: Any, byte_count: Any) -> None:
    """T.mbarrier_arrive_expect_tx."""
    mbarrier_arrive_expect_tx(barrier_id, byte_count)


def ptx_wait_barrier(barrier_id: Any) -> None:
    """Waits until the barrier's first phase has completed, as T.mbarrier_wait_parity(barrier, 0) does."""
    mbarrier_wait_parity(barrier_id, 0)


def ptx_cp_async_barrier(barrier_id: Any) -> None:
    """Holds the barrier's phase back until the thread's earlier cp.async copies have landed. It is no arrival that the
    barrier counts: the thread arrives itself, after it."""
    what = "T.ptx_cp_async_barrier"
    builder = require(what)
    builder.emit(BarrierHeld(one_barrier(what, barrier_id), loc=builder.here))


def ptx_fence_barrier_init() -> None:
    """Shows initialised barriers to the copy engine and the cluster: the barriers of T.alloc_barrier are shown as they
    are made, so nothing is left to do."""
    require("T.ptx_fence_barrier_init")


def ptx_init_barrier_thread_count(barrier_id: Any, thread_count: Any) -> None:
    """Says how many arrivals complete a phase: T.alloc_barrier has said it and made the barrier ready, so that this
    only repeats it, before the barrier's first use."""
    what = "T.ptx_init_barrier_thread_count"
    builder = require(what)
    bar = one_barrier(what, barrier_id)
    buffer, counts = bar.buffer, bar.buffer.attr("count")
    place = bar.starts[0]
    which = {counts[int(place.value)]} if isinstance(place, Const) and 0 <= place.value < len(counts) else set(counts)
    given = thread_count.value if isinstance(thread_count, Const) else thread_count
    if which != {given}:
        raise fault(
            f"{what} of {shown(thread_count)} for `{buffer.name}`, whose barriers take {', '.join(map(str, counts))}",
            "T.alloc_barrier says how many arrivals complete a phase",
            f"{buffer.name} = T.alloc_barrier({shown(thread_count)})",
        )
    used = any(n is buffer for f in builder.frames for s in f.body if not isinstance(s, Alloc) for n in walk(s))
    if used or builder.within(*LOOPS) is not None:
        raise fault(
            f"{what} of `{buffer.name}` {'after its first use' if used else 'in a loop'}",
            "a barrier is made ready once, where T.alloc_barrier stands",
            "leave it out; a phase follows the one before it by itself",
        )


def sync_global() -> None:
    """T.sync_grid."""
    sync_grid()


# Intrinsics whose name, arguments and meaning are those of a function here.
_NAMES = {
    mathfns: (
        "exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh "
        "atan2 erf sigmoid floor ceil trunc nearbyint fmod hypot copysign nextafter isnan isinf isfinite ldexp "
        "popcount clz __exp __exp10 __log __log2 __log10 __sin __cos __tan __ffs"
    ),
    barrier: (
        "sync_grid sync_warp cluster_sync cluster_arrive cluster_arrive_relaxed cluster_wait pdl_trigger pdl_sync "
        "fence_proxy_async warpgroup_arrive ptx_commit_group ptx_wait_group mbarrier_wait_parity mbarrier_expect_tx"
    ),
    warp: "activemask",
}
_INTRINSICS: dict[str, Callable[..., Any]] = {
    **{name: getattr(home, name) for home, names in _NAMES.items() for name in names.split()},
    "fabs": arithmetic.abs,
    "pow": arithmetic.pow,
    "if_then_else": arithmetic.if_then_else,
    "ptx_arrive_barrier": ptx_arrive_barrier,
    "ptx_arrive_barrier_expect_tx": ptx_arrive_barrier_expect_tx,
    "ptx_wait_barrier": ptx_wait_barrier,
    "ptx_fence_barrier_init": ptx_fence_barrier_init,
    "ptx_cp_async_barrier": ptx_cp_async_barrier,
    "create_tma_descriptor": create_tma_descriptor,
    "tma_load": tma_load,
}


def call_intrin(dtype: Any, func_name: Any, *args: Any, annotations: Any = None) -> Any:
    """An intrinsic by TVM's name ("tirx.exp", "tl.sync_grid") or by its Op: the function of T that it is. Its value is
    of `dtype`; "handle" and "void" say that it has none."""
    require("T.call_intrin")
    name = func_name if isinstance(func_name, Node) else getattr(func_name, "name", func_name)
    if not isinstance(name, str):
        raise fault(f"T.call_intrin of {shown(func_name)}", "an intrinsic is given by name", '"tirx.exp"')
    word = name.rsplit(".", 1)[-1]
    function = _INTRINSICS.get(word)
    if function is None:
        raise fault(
            f"T.call_intrin of {shown(name)}",
            "an intrinsic is one that T has as a function of the same arguments",
            nearest(word, _INTRINSICS, "call the function of T that does it"),
        )
    made = function(*args)
    if isinstance(made, Expr) and str(dtype) not in ("handle", "void") and made.dtype is not as_dtype(dtype):
        raise fault(
            f"T.call_intrin of {shown(name)} as {dtype}",
            f"its value is of type {made.dtype}",
            f"give {made.dtype}, and T.cast the value",
        )
    return made
