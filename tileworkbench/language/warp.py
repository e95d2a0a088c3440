"""Exchanges and votes inside a warp, and where a thread stands in the block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.dtype import BOOL, DTYPES, INT32
from ..ir.expr import Call, Const, Expr, Var, as_expr, binary, cast, compare, const, select
from ..ir.mathfn import math_call
from ..ir.stmt import Let
from .builder import Builder, require
from .faults import fault, shown
from .launch import get_thread_bindings, get_thread_extents
from .mathfns import predicate_of, scalar

FULL, _WARP = 0xFFFFFFFF, 32
UINT32, UINT64 = DTYPES["uint32"], DTYPES["uint64"]


def _whole(name: str, mask: Any) -> Expr:
    """The mask of all lanes: what is lowered knows no other, and a simulator must not pass over one."""
    given = as_expr(mask, UINT32)
    if not isinstance(given, Const) or int(given.value) not in (FULL, -1, (1 << 64) - 1):
        raise fault(
            f"T.{name} with a mask of some lanes",
            "exchanges and votes are made by all lanes of a warp",
            "leave the mask out, and choose with T.if_then_else",
        )
    return given


def _shuffle(name: str, text: str) -> Callable[..., Expr]:
    def made(value: Any, delta: Any, width: int = 32, mask: Any = FULL) -> Expr:
        if width not in (1, 2, 4, 8, 16, 32):
            raise fault(f"T.{name}: width={shown(width)}", "it is a power of two up to 32", "width=32")
        x = scalar(value, f"T.{name}")
        return Call(name, (x, as_expr(delta), as_expr(width), _whole(name, mask)), dtype=x.dtype)

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
        return Call(name, (predicate_of(predicate, f"T.{name}"), _whole(name, mask)), dtype=result)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    return made


any_sync = _vote("any_sync", BOOL, "Whether any lane's predicate is true.")
all_sync = _vote("all_sync", BOOL, "Whether all lanes' predicates are true.")
ballot_sync = _vote("ballot_sync", UINT64, "The lanes whose predicate is true, as bits.")


def ballot(predicate: Any) -> Expr:
    """T.ballot_sync over the whole warp."""
    return ballot_sync(predicate)


def _match(name: str, text: str) -> Callable[..., Expr]:
    def made(value: Any, mask: Any = FULL) -> Expr:
        x = scalar(value, f"T.{name}")
        if x.dtype is BOOL or (x.dtype.is_int and x.dtype.bits < 32):
            x = cast(x, INT32)
        if x.dtype.bits not in (32, 64):
            raise fault(
                f"T.{name} of {x.dtype}", "it compares the bits of numbers of 32 or 64 bits", "T.cast(x, 'float32')"
            )
        return Call(name, (x, _whole(name, mask)), dtype=UINT32)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    return made


match_any_sync = _match("match_any_sync", "The lanes whose value has the same bits as this lane's, as bits.")
match_all_sync = _match("match_all_sync", "All lanes as bits where all have the same bits as value, else 0.")


def __fns(mask: Any, base: Any, offset: Any) -> Expr:
    """The place of the `offset`-th one bit of a 32-bit mask, counted from bit `base` upwards, downwards where `offset`
    is negative; 0 asks for bit `base` itself. 0xFFFFFFFF where there is none."""
    builder = require("T.__fns")
    count = offset.value if isinstance(offset, Const) else offset
    if not isinstance(count, int) or isinstance(count, bool) or not -_WARP <= count <= _WARP:
        raise fault(f"T.__fns: offset={shown(offset)}", "it is an int from -32 to 32", "give the number of the bit")
    bits, start = (_held(builder, cast(scalar(x, "T.__fns"), UINT32)) for x in (mask, base))
    one, none, last = (const(n, UINT32) for n in (1, FULL, 31))
    if count == 0:
        return select(compare("ne", binary("and", binary("shr", bits, start), one), 0), start, none)
    if count > 0:
        left = _held(builder, binary("and", bits, binary("shl", none, start)))
        for _ in range(count - 1):
            left = _held(builder, binary("and", left, binary("sub", left, one)))
        return cast(binary("sub", cast(math_call("ffs", left), INT32), const(1)), UINT32)
    left = _held(builder, binary("and", bits, binary("shr", none, binary("sub", last, start))))
    for _ in range(-count - 1):
        top = binary("shr", const(1 << 31, UINT32), cast(math_call("clz", left), UINT32))
        left = _held(builder, select(compare("eq", left, 0), left, binary("xor", left, top)))
    return cast(binary("sub", const(31), cast(math_call("clz", left), INT32)), UINT32)


def _held(builder: Builder, e: Expr) -> Expr:
    """A value that is used more than once, computed once."""
    if isinstance(e, Const | Var):
        return e
    made = Var(builder.unique("bits"), dtype=e.dtype, loc=builder.here)
    builder.emit(Let(made, e, loc=builder.here))
    builder.define(made)
    return made


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
