"""From planned to thread level: every op is emitted by its implementation, channels become barriers and cursors, tiles
become registers and shared storage. Nothing is decided here."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..ir.arith import substitute
from ..ir.effects import accesses
from ..ir.expr import Buffer, Expr, Special, Var, compare, const
from ..ir.instr import Fence, Sync
from ..ir.kernel import Kernel
from ..ir.node import walk
from ..ir.planned import Role
from ..ir.region import root
from ..ir.stmt import Alloc, If, Stmt
from ..ir.uniform import Uniformity
from ..ops.context import Context
from ..target import Target
from .facts import kernel_facts, not_empty, wide_tensors
from .lowering import Lowering
from .rings import barrier_buffers, barrier_inits, own_inits


def lower(kernel: Kernel, target: Target) -> Kernel:
    """The thread-level kernel; shared storage still without offsets."""
    kernel = _with_thread_numbers(kernel)
    uniform, own_reads = Uniformity(kernel, target.arch.warp_size), _read_and_written(kernel)
    again = _touched_again(kernel)
    storage = _shared_storage(kernel)
    barriers = barrier_buffers(kernel.channels)
    roles = [r for r in kernel.body if isinstance(r, Role)]
    body: list[Stmt] = []
    inits = barrier_inits(kernel.channels, barriers, {r.name: r.warps for r in roles})
    own = [n.buffer for n in walk(kernel.body) if isinstance(n, Alloc) and n.buffer.space == "barrier"]
    inits = (*inits, *own_inits(own))
    if inits:
        first = compare("eq", Special("thread"), 0)
        who = "cluster" if any(b.attr("cluster") for b in own) else "block"
        ready = Sync(who, reason="barriers are initialised before anyone uses them")
        body += [If(first, (*inits, Fence("mbarrier_init"))), ready]
    created: list[Buffer] = []
    maps: dict[Any, Any] = {}
    names: dict[str, int] = {}
    for role in roles:
        threads = min(role.warps * target.arch.warp_size, kernel.launch_threads)
        ctx = Context(
            target, kernel_facts(kernel, target, warps=role.warps), kernel.layouts, role.name, role.warps,
            storage=dict(storage), maps=maps, names=names, uniform=uniform, own_reads=own_reads,
            touched_again=again,
            wide=wide_tensors(kernel), block_threads=threads, apart=len(roles) > 1,
            outside=kernel.attrs.get("safe_values", {}), present=threads,
        )  # fmt: skip
        body.append(Lowering(ctx, role, barriers).role())
        created += ctx.created
    buffers = (*dict.fromkeys((*storage.values(), *created)), *barriers.values(), *own)
    placed = {made: kernel.attrs["places"][tile][0] for tile, made in storage.items() if tile in kernel.attrs["places"]}
    attrs = {**kernel.attrs, "placed": placed}
    described = tuple(maps.values())
    assumed = (*kernel.assumed, *not_empty(described))
    return kernel.with_(
        level="thread", body=tuple(body), buffers=buffers, maps=described, assumed=assumed, attrs=attrs
    )  # fmt: skip


def _with_thread_numbers(kernel: Kernel) -> Kernel:
    """The user's thread indices in terms of the thread's number in the block, x fastest."""
    numbers: dict[Var, Expr] = {}
    step = 1
    for i, var in enumerate(kernel.thread_vars):
        extent = kernel.thread_shape[i] if i < len(kernel.thread_shape) else 1
        number: Expr = Special("thread")
        if extent == 1:
            number = const(0)
        elif step > 1:
            number = number // step
        numbers[var] = number % extent if extent > 1 and step * extent < kernel.threads else number
        step *= extent
    return kernel.with_(body=tuple(substitute(s, numbers) for s in kernel.body)) if numbers else kernel


def _touched_again(kernel: Kernel) -> frozenset[Buffer]:
    found = [a.buffer for a in accesses(kernel.body) if a.buffer.space == "global"]
    sites = Counter(map(root, found))
    return frozenset(b for b in found if sites[root(b)] > 1)


def _read_and_written(kernel: Kernel) -> frozenset[Buffer]:
    found = [a for a in accesses(kernel.body) if a.buffer.space == "global"]
    both = {root(a.buffer) for a in found if a.reads} & {root(a.buffer) for a in found if a.writes}
    return frozenset(a.buffer for a in found if root(a.buffer) in both)


def _shared_storage(kernel: Kernel) -> dict[Buffer, Buffer]:
    """A flat shared buffer for each tile, its versions behind one another."""
    out: dict[Buffer, Buffer] = {}
    names: dict[str, int] = {}
    for n in walk(kernel.body):
        if isinstance(n, Buffer) and n.space == "shared" and n not in out:
            size = kernel.layouts[n].size * kernel.versions.get(n, 1)
            seen = names.get(n.name, 0)
            names[n.name] = seen + 1
            attrs = (("alignment", kernel.layouts[n].alignment),)
            out[n] = Buffer(
                n.name if not seen else f"{n.name}_{seen}", (size,), n.dtype, "shared", attrs=attrs, loc=n.loc
            )
    return out
