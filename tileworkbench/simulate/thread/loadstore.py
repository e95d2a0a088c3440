"""Rows that move data between registers and memory: LoadMem, StoreMem,  and AtomicMem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.instr import AtomicMem, LoadMem, Reg, StoreMem
from . import cluster, scalars
from .faults import fault
from .memory import Space, check_defined, predicate, resolver
from .program import Program
from .registers import check_register_read, check_register_write, register_rows
from .warp import RegFile, Warp

Array = Any
WIDTHS = (1, 2, 4, 8, 16, 32)


def registers(p: Program, r: Reg, write: bool) -> Callable[[Warp], tuple[RegFile, int]]:
    """Compiled register run: (warp) → (file, first register), checked for bounds and for matrix work in flight."""
    slot, start, count = p.scope.register(r.buffer), p.scope.value(r.start).read, r.count
    check = check_register_write if write else check_register_read

    def find(w: Warp) -> tuple[RegFile, int]:
        rf = w.regs[slot]
        first = register_rows(w, rf, start(w), count)
        if rf.writing is not None:
            check(w, rf, first, count)
        return rf, first

    return find


def access_bytes(s: Any, count: int, width: int) -> int:
    """The bytes of one access, which the hardware limits to a few widths."""
    size = count * width
    if size not in WIDTHS:
        raise InternalError(
            f"{type(s).__name__} of {size} bytes: no such access", rule=f"an access has {WIDTHS} bytes", loc=s.loc
        )
    return size


def mark(w: Warp, space: Space, lanes: Array, units: Array, number: int, write: bool, atomic: bool = False) -> None:
    """Enters the accesses of `lanes` ((lanes, units)) into the race record."""
    if space.shadow is None or not lanes.size:
        return
    threads = np.repeat(w.threads[lanes], units.shape[1])
    if write:
        space.shadow.write(w, threads, units.ravel(), number, atomic)
    else:
        space.shadow.read(w, threads, units.ravel(), number)


def load(p: Program, s: LoadMem) -> Callable[[Warp], None]:
    """LoadMem: one access of count × width bytes a lane, aligned as a whole."""
    count, dtype = s.dst.count, s.dst.buffer.dtype
    width, container = dtype.bytes, dtype.numpy
    size = access_bytes(s, count, width)
    find, where, holds = registers(p, s.dst, True), resolver(p, s.src, size), predicate(p, s.pred)
    fill = None if s.fill is None else p.scope.value(s.fill)
    number = p.number(s)

    def run(w: Warp) -> None:
        rf, first = find(w)
        pred = holds(w)
        lanes = w.active(pred)
        if lanes.size:
            space, base = where(w, lanes)
            units = space.units(base, size)
            mark(w, space, lanes, units, number, False)
            values = np.ascontiguousarray(space.read(base, size)).view(container)
            rf.data[first : first + count, lanes] = values.T
            rf.defined[first : first + count, lanes] = space.element_defined(units, count, width).T
        if fill is not None and pred is not True:
            rest = np.flatnonzero(w.mask & ~np.asarray(pred))
            if rest.size:
                value = scalars.as_lanes(fill.read(w), dtype, w.lanes)[rest]
                rf.data[first : first + count, rest] = value
                rf.defined[first : first + count, rest] = True

    return run


def write_bytes(w: Warp, space: Space, lanes: Array, base: Array, raw: Array, defined: Array, number: int) -> None:
    """Stores `raw` ((lanes, bytes)) with `defined` ((lanes, bytes)); undefined values may reach shared memory only."""
    size = raw.shape[1]
    units = space.units(base, size)
    if not space.shared and not defined.all():
        bad = ~defined.all(axis=1)
        raise fault(
            w,
            "undefined",
            f"a value that was never written is stored to {space.name}",
            lanes=lanes[bad],
            rule="what reaches global memory is defined",
            fix="initialise the registers, or guard the store",
        )
    if size >= space.unit:  # the race record knows whole elements; a view's may be parts of one
        mark(w, space, lanes, units, number, True)
    at = base[:, None] + np.arange(size)
    space.raw[at] = raw
    if (space.raw[at] != raw).any():
        clash = (space.raw[at] != raw).any(axis=1)
        w.block.report(
            fault(
                w,
                "race",
                f"two threads write different values to the same place of {space.name} in one statement",
                lanes=lanes[clash],
                rule="the threads of one store write different places",
                fix="guard the store",
            )
        )
    space.defined[units] = defined if space.unit == 1 else True


def store(p: Program, s: StoreMem) -> Callable[[Warp], None]:
    """StoreMem: shared memory takes undefined values along with their shadow, global memory refuses them."""
    count, width = s.src.count, s.src.buffer.dtype.bytes
    size = access_bytes(s, count, width)
    find, where, holds = registers(p, s.src, False), resolver(p, s.dst, size), predicate(p, s.pred)
    elsewhere = None if s.block is None else p.scope.value(s.block)
    number = p.number(s)

    def run(w: Warp) -> None:
        rf, first = find(w)
        lanes = w.active(holds(w))
        if not lanes.size:
            return
        space, base = where(w, lanes)
        values = np.ascontiguousarray(rf.data[first : first + count, lanes].T).view(np.uint8)
        known = np.repeat(rf.defined[first : first + count, lanes].T, width, axis=1)
        if elsewhere is None:
            write_bytes(w, space, lanes, base, values, known, number)
            return
        check_defined(w, elsewhere.undefined, "the block's number in the cluster")
        ranks = np.broadcast_to(elsewhere.read(w), w.mask.shape)[lanes]
        for rank in np.unique(ranks):
            there = cluster.member(w, int(rank), f"a store to {s.dst.buffer.name}")
            mine = ranks == rank
            with there.visited_by(w.block):
                write_bytes(w, there.shared, lanes[mine], base[mine], values[mine], known[mine], number)

    return run


# --- atomics ----------------------------------------------------------------------------------------------------------
def _atomic_result(op: str, dtype: Any) -> Callable[[Any, Any], Any]:
    if op == "load":
        return lambda old, new: old
    if op in ("exch", "store"):
        return lambda old, new: new
    return scalars.binary({"add": "add", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor"}[op], dtype)


def atomic(p: Program, s: AtomicMem) -> Callable[[Warp], None]:
    """Lane after lane, as the memory system would: two lanes may name the same element. For cas the value registers
    hold the expected value, then the new one."""
    dtype = s.dst.buffer.dtype
    packed = 1 if s.op == "cas" else s.value.count
    find, where, holds = registers(p, s.value, False), resolver(p, s.dst, packed * dtype.bytes), predicate(p, s.pred)
    keep = None if s.old is None else registers(p, s.old, True)
    combine = None if s.op == "cas" else _atomic_result(s.op, dtype)
    number = p.number(s)

    def run(w: Warp) -> None:
        rf, first = find(w)
        lanes = w.active(holds(w))
        if not lanes.size:
            return
        space, base = where(w, lanes)
        units = space.units(base, packed * dtype.bytes)
        if not (
            rf.defined[first : first + s.value.count, lanes].all() and (s.op == "store" or space.defined[units].all())
        ):
            raise fault(
                w,
                "undefined",
                f"an atomic on {space.name} uses a value that was never written",
                lanes=lanes,
                rule="both operands of an atomic are defined",
            )
        if s.op != "load":
            mark(w, space, lanes, units, number, True, atomic=True)
        if s.op == "store":
            space.defined[units] = True
        old = np.zeros((packed, w.lanes), dtype=dtype.numpy)
        cells = space.raw.view(dtype.numpy) if space.unit != 1 else None
        for lane, at in zip(lanes, base, strict=True):
            for e in range(packed):
                cell = (
                    cells[at // dtype.bytes + e :][:1]
                    if cells is not None
                    else space.raw[at + e * dtype.bytes :][: dtype.bytes].view(dtype.numpy)
                )
                old[e, lane] = cell[0]
                if combine is None:
                    if cell[0] == rf.data[first, lane]:
                        cell[0] = rf.data[first + 1, lane]
                else:
                    cell[0] = combine(cell[0:1], rf.data[first + e : first + e + 1, lane])[0]
        if keep is not None:
            target, into = keep(w)
            target.data[into : into + packed, lanes] = old[:, lanes]
            target.defined[into : into + packed, lanes] = True
        _publish(w, s, space, np.unique(units))

    return run


def _publish(w: Warp, s: AtomicMem, space: Space, units: Array) -> None:
    """Order between blocks through an atomic: a release (or a gpu fence before it) hands over, an acquire (or a gpu
    fence after it) takes. Kept for whole blocks, which is coarser than the device's rule."""
    if space.shared or s.scope_of == "cta":
        return
    block, published = w.block, w.block.launch.published
    for unit in units.tolist():
        found = published.setdefault((space.name, unit), set())
        taken = set(found)
        if s.order in ("release", "acq_rel", "seq_cst") or block.fenced:
            found |= {block.number} | block.acquired
        if s.order in ("acquire", "acq_rel", "seq_cst"):
            block.acquired |= taken
        else:
            block.pre_acquired |= taken
