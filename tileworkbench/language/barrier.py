"""Barriers and waits that a kernel writes itself: mbarriers, block barriers, asynchronous groups, warpgroups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import Loc
from ..ir.dtype import BOOL, INT32
from ..ir.expr import Buffer, Call, Const, Expr, Load, as_expr
from ..ir.stmt import Eval, Region
from ..ir.uniform import WARPGROUP
from ..ops.barrier import BarrierArrive, BarrierCopies, BarrierExpect, BarrierWait
from ..ops.warpgroup import (
    CopyGroup,
    SetMaxRegisters,
    StoreGroup,
    WaitWgmma,
    WarpGroups,
    WgmmaArrive,
    WgmmaCommit,
    WgmmaOperand,
)
from .builder import Builder, require
from .dtypes import as_dtype
from .faults import fault, shown
from .mathfns import predicate_of
from .regions import to_region


def one_barrier(what: str, bar: Any) -> Region:
    """One barrier: `bar[i]`, or the name of an array of one."""
    if isinstance(bar, Buffer) and bar.space == "barrier" and bar.shape == (1,):
        return to_region(bar, what)
    if not isinstance(bar, Load) or bar.buffer.space != "barrier":
        several = isinstance(bar, Buffer) and bar.space == "barrier"
        raise fault(
            f"{what}: {'which barrier of ' if several else ''}{shown(bar)}{'' if several else ' is no barrier'}",
            "it works on one barrier that T.alloc_barrier made",
            f"write `{bar.name}[i]`" if several else "bar = T.alloc_barrier(arrive_count)",
        )
    return to_region(bar, what)


def mbarrier_arrive(mbarrier: Any, cta_id: Any = None) -> None:
    """Arrives on a barrier; `cta_id` means the same barrier in another block of the cluster."""
    builder = require("T.mbarrier_arrive")
    bar = one_barrier("T.mbarrier_arrive", mbarrier)
    cta = None
    if cta_id is not None:
        of_cluster("T.mbarrier_arrive: cta_id", bar)
        cta = rank_in_cluster(builder, "T.mbarrier_arrive: cta_id", cta_id)
    builder.emit(BarrierArrive(bar, cta, loc=builder.here))


def ptx_arrive_cluster_barrier(mbarrier: Any, cta_id: Any) -> None:
    """T.mbarrier_arrive on the barrier of the cluster's block `cta_id`."""
    mbarrier_arrive(mbarrier, cta_id)


def of_cluster(what: str, bar: Region) -> None:
    """Refuses a barrier on which other blocks cannot arrive."""
    if not bar.buffer.attr("cluster"):
        raise fault(
            f"{what} on `{bar.buffer.name}`, a barrier of one block",
            "other blocks arrive on the barriers of T.alloc_cluster_barrier",
            f"{bar.buffer.name} = T.alloc_cluster_barrier(arrive_count)",
        )


def rank_in_cluster(builder: Builder, what: str, block: Any) -> Expr:
    """A block's number in the cluster, checked as far as it is known."""
    cta = as_expr(block)
    if not cta.dtype.is_int:
        raise fault(f"{what} is {cta.dtype}", "a block's number in the cluster is an integer", "an int")
    members = math.prod(builder.launch.cluster) if builder.launch is not None else 1
    if isinstance(cta, Const) and not 0 <= cta.value < members:
        raise fault(
            f"{what}={cta.value} in clusters of {members} block{'s' * (members != 1)}",
            f"a cluster's blocks are numbered 0 … {members - 1}",
            "T.ClusterKernel(…, cluster_dims=…) says how many there are",
        )
    return cta


def mbarrier_expect_tx(mbarrier: Any, tx: Any) -> None:
    """Adds expected bytes to the barrier's phase without arriving."""
    builder = require("T.mbarrier_expect_tx")
    builder.emit(BarrierExpect(one_barrier("T.mbarrier_expect_tx", mbarrier), as_expr(tx), loc=builder.here))


def mbarrier_arrive_expect_tx(mbarrier: Any, tx: Any) -> None:
    """Adds expected bytes and arrives."""
    builder = require("T.mbarrier_arrive_expect_tx")
    made = BarrierExpect(one_barrier("T.mbarrier_arrive_expect_tx", mbarrier), as_expr(tx), True, loc=builder.here)
    builder.emit(made)


def mbarrier_wait_parity(mbarrier: Any, parity: Any) -> None:
    """Waits until the barrier's phase of this parity (0 or 1) has completed."""
    builder = require("T.mbarrier_wait_parity")
    made = BarrierWait(one_barrier("T.mbarrier_wait_parity", mbarrier), as_expr(parity), loc=builder.here)
    builder.emit(made)


barrier_arrive, barrier_wait = mbarrier_arrive, mbarrier_wait_parity


def cp_async_barrier_noinc(barrier: Any) -> None:
    """Arrives when the thread's earlier cp.async copies have landed."""
    builder = require("T.cp_async_barrier_noinc")
    builder.emit(BarrierCopies(one_barrier("T.cp_async_barrier_noinc", barrier), loc=builder.here))


def _ordering(name: str, text: str) -> Callable[[], None]:
    def made() -> None:
        builder = require(f"T.{name}")
        builder.emit(Eval(Call(name, (), dtype=INT32, loc=builder.here), loc=builder.here))

    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    return made


fence_proxy_async = _ordering("fence_proxy_async", "Orders ordinary stores before asynchronous reads.")
sync_grid = _ordering("sync_grid", "Waits for all blocks of the grid (a cooperative launch).")
cluster_sync = _ordering("cluster_sync", "Waits for all blocks of the cluster.")
cluster_arrive = _ordering("cluster_arrive", "Arrives on the cluster's barrier.")
cluster_arrive_relaxed = _ordering("cluster_arrive_relaxed", "Arrives on the cluster's barrier without ordering.")
cluster_wait = _ordering("cluster_wait", "Waits on the cluster's barrier.")
pdl_trigger = _ordering("pdl_trigger", "Lets the dependent launch begin.")
pdl_sync = _ordering("pdl_sync", "Waits for the launch that this one depends on.")


def _numbers(what: str, *values: Any) -> tuple[Expr, ...]:
    known = tuple(v.value if isinstance(v, Const) else v for v in values)
    for value in known:
        if isinstance(value, Expr | float) or not hasattr(value, "__index__"):
            raise fault(f"{what}({shown(value)})", "its numbers are known while compiling", "use Python ints")
    return tuple(as_expr(v) for v in known)


def sync_threads(barrier_id: Any = None, arrive_count: Any = None) -> None:
    """Waits for all threads of the block, or for `arrive_count` threads on a named barrier."""
    builder = require("T.sync_threads")
    args = _numbers("T.sync_threads", *(v for v in (barrier_id, arrive_count) if v is not None))
    builder.emit(Eval(Call("sync_threads", args, dtype=INT32, loc=builder.here), loc=builder.here))


def named_barrier_arrive(barrier_id: Any, thread_count: Any) -> None:
    """Arrives on a named barrier and goes on."""
    builder = require("T.named_barrier_arrive")
    args = _numbers("T.named_barrier_arrive", barrier_id, thread_count)
    builder.emit(Eval(Call("named_barrier_arrive", args, dtype=INT32, loc=builder.here), loc=builder.here))


def sync_warp(mask: Any = None) -> None:
    """Waits for the threads of the warp."""
    builder = require("T.sync_warp")
    args = (as_expr(mask),) if mask is not None else ()
    builder.emit(Eval(Call("sync_warp", args, dtype=INT32, loc=builder.here), loc=builder.here))


def tvm_storage_sync(storage_scope: str) -> None:
    """TVM's name of a meeting: of the block for "shared" memory, of the warp for "warp"."""
    if storage_scope in ("shared", "shared.dyn"):
        sync_threads()
    elif storage_scope == "warp":
        sync_warp()
    else:
        raise fault(
            f"T.tvm_storage_sync({shown(storage_scope)})", 'it is "shared" or "warp"', "T.sync_grid() meets all blocks"
        )


def _vote(name: str, dtype: Any, text: str) -> Callable[[Any], Expr]:
    def made(predicate: Any) -> Expr:
        return Call(name, (predicate_of(predicate, f"T.{name}"),), dtype=dtype)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    return made


syncthreads_count = _vote("syncthreads_count", INT32, "A block barrier that counts the true predicates.")
syncthreads_and = _vote("syncthreads_and", BOOL, "A block barrier; whether all predicates are true.")
syncthreads_or = _vote("syncthreads_or", BOOL, "A block barrier; whether any predicate is true.")


# -- asynchronous groups --


def _pending(what: str, count: Any) -> int:
    """A number of groups, or of registers: an int of 0 or more."""
    count = count.value if isinstance(count, Const) else count
    if isinstance(count, bool | Expr) or not hasattr(count, "__index__") or count.__index__() < 0:
        raise fault(f"{what}({shown(count)})", "it takes an int of 0 or more, known while compiling", f"{what}(0)")
    return int(count.__index__())


def ptx_commit_group() -> None:
    """Closes a group of cp.async copies."""
    builder = require("T.ptx_commit_group")
    builder.emit(CopyGroup(True, loc=builder.here))


def ptx_wait_group(n: int) -> None:
    """Waits until at most `n` cp.async groups are outstanding."""
    builder = require("T.ptx_wait_group")
    builder.emit(CopyGroup(False, _pending("T.ptx_wait_group", n), loc=builder.here))


def tma_store_arrive() -> None:
    """Closes a group of bulk stores."""
    builder = require("T.tma_store_arrive")
    builder.emit(StoreGroup(True, loc=builder.here))


def tma_store_wait(count: int = 0, read: bool = True) -> None:
    """Waits until at most `count` groups of bulk stores are outstanding."""
    builder = require("T.tma_store_wait")
    builder.emit(StoreGroup(False, _pending("T.tma_store_wait", count), bool(read), loc=builder.here))


# -- warpgroups --


class Groups:
    """`with T.ws(0, 1):`"""

    launch_kind = "ws"

    def __init__(self, groups: tuple[int, ...]) -> None:
        self.groups = groups

    def run(self, builder: Builder, names: Any, loc: Loc, keep: Any) -> Iterator[None]:
        launch = builder.launch
        if launch is None:
            raise fault("T.ws outside `with T.Kernel(...)`", "it selects threads of a block", "move it inside", loc)
        count = -(-launch.thread_shape[0] // WARPGROUP)
        bad = next((g for g in self.groups if not 0 <= g < count), None)
        if bad is not None:
            raise fault(
                f"T.ws({bad}) in a block of {launch.thread_shape[0]} threads",
                f"the block has warpgroups 0 … {count - 1}",
                f"use threads={(bad + 1) * WARPGROUP}" if bad > 0 else "T.ws(0)",
                loc,
            )
        with builder.inside("group") as frame:
            yield None
        builder.emit(WarpGroups(self.groups, tuple(frame.body), loc=loc))


def ws(*warp_group_idx: int) -> Groups:
    """A block that only these groups of 128 threads run."""
    if not warp_group_idx or not all(isinstance(g, int) and not isinstance(g, bool) for g in warp_group_idx):
        raise fault(f"T.ws({', '.join(map(shown, warp_group_idx))})", "it takes the numbers of warpgroups", "T.ws(0)")
    return Groups(warp_group_idx)


WarpSpecialize = ws
WarpSpecializeFrame = Groups


def wait_wgmma(id: int) -> None:
    """Waits until at most `id` groups of warpgroup products are outstanding."""
    builder = require("T.wait_wgmma")
    builder.emit(WaitWgmma(_pending("T.wait_wgmma", id), loc=builder.here))


warpgroup_wait = wait_wgmma


def warpgroup_arrive() -> None:
    """Orders register accesses before the warpgroup products that follow."""
    builder = require("T.warpgroup_arrive")
    builder.emit(WgmmaArrive(loc=builder.here))


def warpgroup_commit_batch() -> None:
    """Closes a group of warpgroup products."""
    builder = require("T.warpgroup_commit_batch")
    builder.emit(WgmmaCommit(loc=builder.here))


def warpgroup_fence_operand(buffer_or_ptr: Any, offset: Any = 0, num_regs: Any = None, dtype: Any = None) -> None:
    """Keeps the registers of an accumulator, for the device compiler too, where warpgroup products need them: what
    comes before stays before, what comes after stays after. All of the tile's registers are taken, whichever part is
    named."""
    what = "T.warpgroup_fence_operand"
    builder = require(what)
    tile = to_region(buffer_or_ptr, f"{what}: the accumulator")
    if isinstance(buffer_or_ptr, Load) and num_regs is None:
        raise fault(f"{what} of an element", "from an element on, num_regs says how many registers", "name the tile")
    if dtype is not None and as_dtype(dtype) is not tile.buffer.dtype:
        raise fault(f"{what}: dtype={shown(dtype)}", f"`{tile.buffer.name}` is {tile.buffer.dtype}", "leave it out")
    builder.emit(WgmmaOperand(tile, loc=builder.here))


def set_max_nreg(reg_count: int, is_inc: int | bool) -> None:
    """Sets the registers of each thread of this warpgroup; `is_inc` says whether that raises them."""
    builder = require("T.set_max_nreg")
    builder.emit(SetMaxRegisters(_pending("T.set_max_nreg", reg_count), bool(is_inc), loc=builder.here))


def inc_max_nreg(reg_count: int) -> None:
    """T.set_max_nreg upwards."""
    set_max_nreg(reg_count, True)


def dec_max_nreg(reg_count: int) -> None:
    """T.set_max_nreg downwards."""
    set_max_nreg(reg_count, False)
