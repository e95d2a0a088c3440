"""Exchanges and votes inside a warp, and where a thread stands in the block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.dtype import BOOL, DTYPES, INT32
from ..ir.expr import Call, Expr, as_expr, binary, const, truth
from .faults import fault, shown
from .launch import get_thread_bindings, get_thread_extents
from .mathfns import scalar

FULL = 0xFFFFFFFF
UINT32, UINT64 = DTYPES["uint32"], DTYPES["uint64"]


def _shuffle(name: str, text: str) -> Callable[..., Expr]:
    def made(value: Any, delta: Any, width: int = 32, mask: Any = FULL) -> Expr:
        if width not in (1, 2, 4, 8, 16, 32):
            raise fault(f"T.{name}: width={shown(width)}", "it is a power of two up to 32", "width=32")
        x = scalar(value, f"T.{name}")
        return Call(name, (x, as_expr(delta), as_expr(width), as_expr(mask, UINT32)), dtype=x.dtype)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    return made


_lane_value = _shuffle("shfl_sync", "")
shfl_xor = _shuffle("shfl_xor", "The value of the lane whose number differs by exclusive or with `delta`.")
shfl_down = _shuffle("shfl_down", "The value of the lane `delta` above.")
shfl_up = _shuffle("shfl_up", "The value of the lane `delta` below.")


def shfl_sync(value: Any, srcLane: Any, width: int = 32, mask: Any = FULL) -> Expr:
    """The value of lane `srcLane` of the group of `width` lanes."""
    return _lane_value(value, srcLane, width, mask)


def tvm_warp_shuffle(mask: Any, value: Any, lane: Any, width: int = 32, warp_size: int = 32) -> Expr:
    """The older spelling of T.shfl_sync."""
    return shfl_sync(value, lane, width, mask)


def tvm_warp_shuffle_up(mask: Any, value: Any, delta: Any, width: int = 32, warp_size: int = 32) -> Expr:
    """The older spelling of T.shfl_up."""
    return shfl_up(value, delta, width, mask)


def tvm_warp_shuffle_down(mask: Any, value: Any, delta: Any, width: int = 32, warp_size: int = 32) -> Expr:
    """The older spelling of T.shfl_down."""
    return shfl_down(value, delta, width, mask)


def tvm_warp_activemask() -> Expr:
    """The older spelling of T.activemask."""
    return activemask()


def _vote(name: str, result: Any, text: str) -> Callable[..., Expr]:
    def made(predicate: Any, mask: Any = FULL) -> Expr:
        return Call(name, (truth(predicate), as_expr(mask, UINT32)), dtype=result)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    return made


any_sync = _vote("any_sync", BOOL, "Whether any lane's predicate is true.")
all_sync = _vote("all_sync", BOOL, "Whether all lanes' predicates are true.")
ballot_sync = _vote("ballot_sync", UINT64, "The lanes whose predicate is true, as bits.")


def ballot(predicate: Any) -> Expr:
    """T.ballot_sync over the whole warp."""
    return ballot_sync(predicate)


def activemask() -> Expr:
    """The active lanes as bits."""
    return Call("activemask", (), dtype=UINT64)


def _combination(kind: str, text: str) -> Callable[[Any], Expr]:
    def made(value: Any) -> Expr:
        x = scalar(value, f"T.warp_reduce_{kind}")
        return Call(f"warp_reduce_{kind}", (x,), dtype=x.dtype)

    made.__name__ = made.__qualname__ = f"warp_reduce_{kind}"
    made.__doc__ = text
    return made


warp_reduce_sum = _combination("sum", "The sum over the warp, in all lanes.")
warp_reduce_max = _combination("max", "The maximum over the warp, in all lanes.")
warp_reduce_min = _combination("min", "The minimum over the warp, in all lanes.")
warp_reduce_bitand = _combination("bitand", "The bitwise and over the warp, in all lanes.")
warp_reduce_bitor = _combination("bitor", "The bitwise or over the warp, in all lanes.")


def linear_thread() -> Expr:
    """The thread's number in the block, x fastest."""
    x, y, z = get_thread_bindings()
    nx, ny, nz = (*get_thread_extents(), 1, 1)[:3]
    number: Expr = x
    if ny > 1:
        number = binary("add", number, binary("mul", y, nx))
    return binary("add", number, binary("mul", z, nx * ny)) if nz > 1 else number


def get_lane_idx(warp_size: int | None = None) -> Expr:
    """The thread's lane in its warp."""
    return binary("floormod", linear_thread(), warp_size or 32)


def get_warp_idx(warp_size: int | None = None) -> Expr:
    """The number of the thread's warp in the block."""
    return binary("floordiv", linear_thread(), warp_size or 32)


get_warp_idx_sync = get_warp_idx


def get_warp_group_idx(warp_size: int | None = None, warps_per_group: int | None = None) -> Expr:
    """The number of the thread's warpgroup in the block."""
    return binary("floordiv", linear_thread(), (warp_size or 32) * (warps_per_group or 4))


def shuffle_elect(thread_extent: int) -> Expr:
    """True for one thread of each group of `thread_extent` threads (0: of the block)."""
    return Call("shuffle_elect", (const(int(thread_extent), INT32),), dtype=BOOL)


def block_rank_in_cluster() -> Expr:
    """The block's number in its cluster."""
    return Call("block_rank_in_cluster", (), dtype=INT32)
