"""T.copy_cluster: one block's tile given to another block of a cluster, or loaded by several."""

from __future__ import annotations

import math
from typing import Any

from ..ir.arith import substitute
from ..ir.expr import Expr, Var, binary, compare, logical, select
from ..ir.node import walk
from ..ir.stmt import Region
from ..ops.cluster_copy import ClusterCopy
from .barrier import of_cluster, one_barrier, rank_in_cluster
from .builder import Builder, require
from .faults import fault, shown
from .regions import pair
from .tileops import copy


def copy_cluster(
    src: Any,
    dst: Any,
    *,
    dst_block: Any = None,
    cluster_mask: int | None = None,
    remote_barrier: Any = None,
    eviction_policy: str | None = None,
    coalesced_width: int | None = None,
    annotations: Any = None,
    loop_layout: Any = None,
) -> None:
    """A copy in which the blocks of `cluster_mask` (one bit a rank in the cluster) all get the tile of the lowest of
    them; other blocks copy their own. Each block reads device memory itself: the second reader finds it in L2.

    With `dst_block` a tile of this block goes to the shared memory of the block of that rank. `remote_barrier` (of
    T.alloc_cluster_barrier) is arrived on once there when all of it is stored; without it the blocks meet by
    T.cluster_sync before it is read."""
    builder = require("T.copy_cluster")
    if dst_block is not None or remote_barrier is not None:
        _give(builder, src, dst, dst_block, remote_barrier, cluster_mask)
        return
    launch = builder.launch
    cluster = tuple(launch.cluster) if launch is not None else ()
    members = math.prod(cluster) if cluster else 1
    mask = 0 if cluster_mask is None else cluster_mask
    if not isinstance(mask, int) or not 0 <= mask < 1 << members:
        raise fault(
            f"T.copy_cluster: cluster_mask={shown(cluster_mask)}",
            f"it has one bit for each of the {members} blocks of a cluster",
            "T.ClusterKernel(…, cluster_dims=…) says how many there are",
        )
    source, target = pair(src, dst, "T.copy_cluster")
    if mask & (mask - 1):  # two blocks at least
        source = _leaders(builder, source, mask, cluster)
    copy(
        source, target, eviction_policy=eviction_policy, coalesced_width=coalesced_width, annotations=annotations,
        loop_layout=loop_layout,
    )  # fmt: skip


def _give(builder: Builder, src: Any, dst: Any, block: Any, barrier: Any, mask: int | None) -> None:
    """The copy to another block's shared memory."""
    if block is None or mask is not None:
        raise fault(
            f"T.copy_cluster: {'remote_barrier without dst_block' if block is None else 'dst_block with cluster_mask'}",
            "a tile goes to one block, dst_block, or is loaded by those of cluster_mask", "give dst_block alone",
        )  # fmt: skip
    rank = rank_in_cluster(builder, "T.copy_cluster: dst_block", block)
    bar = None
    if barrier is not None:
        bar = one_barrier("T.copy_cluster: remote_barrier", barrier)
        of_cluster("T.copy_cluster: remote_barrier", bar)
    source, target = pair(src, dst, "T.copy_cluster")
    builder.emit(ClusterCopy(source, target, rank, bar, loc=builder.here))


def _leaders(builder: Builder, region: Region, mask: int, cluster: tuple[int, ...]) -> Region:
    """The region with the first member's block indices in the blocks of the mask."""
    launch = builder.launch
    places = [binary("floormod", var, size) for var, size in zip(launch.block_vars, cluster, strict=False)]
    rank: Expr | None = None
    step = 1
    for place, size in zip(places, cluster, strict=False):
        part = binary("mul", place, step)
        rank, step = part if rank is None else binary("add", rank, part), step * size
    taken: Expr | None = None
    for number in (n for n in range(step) if mask >> n & 1):
        test = compare("eq", rank, number)  # type: ignore[arg-type]
        taken = test if taken is None else logical("lor", taken, test)
    first = (mask & -mask).bit_length() - 1
    swap: dict[Var, Expr] = {}
    for var, place, size in zip(launch.block_vars, places, cluster, strict=False):
        leader = binary("add", binary("sub", var, place), first % size)
        first //= size
        swap[var] = select(taken, leader, var)  # type: ignore[arg-type]
    starts = tuple(substitute(_whole(builder, e), swap) for e in region.starts)
    return Region(region.buffer, starts, region.extents, loc=region.loc)


def _whole(builder: Builder, e: Expr) -> Expr:
    """The expression without lets, in which block indices might hide."""
    while True:
        lets = {n: builder.lets[n] for n in walk(e) if isinstance(n, Var) and n in builder.lets}
        if not lets:
            return e
        e = substitute(e, lets)
