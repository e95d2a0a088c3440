"""TmaLoad, TmaStore, BulkLoad and BulkStore: one thread asks, the copy engine moves.

A load's data belong to the barrier's phase from its issue on: whoever touches them must have waited for that phase. A
store reads its source until WaitGroup(bulk, reads_only) and owns its destination until WaitGroup(bulk).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.expr import Buffer
from ...ir.instr import BulkLoad, BulkStore, TmaLoad, TmaStore
from . import scalars
from .block import Work
from .boxes import Box, check_inside, fill_bytes
from .faults import fault
from .groups import GroupWork, add
from .memory import ALIGNMENT, Space, check_defined, resolver, uniform
from .program import Program
from .races import Pending
from .waits import barrier
from .warp import Warp

Array = Any


def one_thread(w: Warp) -> Any:
    """The single lane that issues; asking by more lanes would copy more than once."""
    lanes = w.active()
    if lanes.size != 1:
        raise fault(
            w, "divergent", f"{lanes.size} threads issue the same transfer", lanes=lanes,
            rule="one thread issues a bulk or tensor copy", fix="put it into an election",
        )  # fmt: skip
    return lanes


def _askers(w: Warp, s: TmaLoad | BulkLoad) -> Iterator[Any]:
    """The single lane that issues; where the kernel itself asks, all that came, one after another."""
    if not s.asked:
        yield one_thread(w)
        return
    mask = w.mask
    for lane in w.active():
        alone = np.zeros_like(mask)
        alone[lane] = True
        w.set_mask(alone)
        yield w.active()
    w.set_mask(mask)


def _integers(p: Program, exprs: tuple[Any, ...], what: str) -> Callable[[Warp], list[int]]:
    values = [p.scope.value(e) for e in exprs]

    def read(w: Warp) -> list[int]:
        for v in values:
            check_defined(w, v.undefined, what)
        return [uniform(w, v.read(w), what) for v in values]

    return read


def _box(w: Warp, name: str) -> Box:
    launch = w.block.launch
    if name not in launch.boxes:
        recipe = w.block.program.maps[name]
        launch.boxes[name] = Box(recipe, launch)
        if skew := w.block.tensor(recipe.tensor).skew:
            raise fault(
                w, "alignment", f"{recipe.tensor.name} starts {skew} bytes after a multiple of {ALIGNMENT}",
                rule=f"a described tensor starts at a multiple of {ALIGNMENT} bytes",
            )  # fmt: skip
    found: Box = launch.boxes[name]
    return found


def _aligned(w: Warp, base: int, multiple: int, buffer: Buffer) -> None:
    if base % multiple:
        where = "" if buffer.space == "global" else "shared "
        raise fault(
            w, "alignment", f"{buffer.name} at {where}byte {base}", rule=f"it starts at a multiple of {multiple} bytes"
        )


def _begins(w: Warp, box: Box, coords: list[int]) -> None:
    """The instruction is illegal on a box that begins inside of 16 bytes of a row."""
    byte = coords[0] * box.item
    if byte % ALIGNMENT:
        raise fault(
            w, "alignment", f"a box begins at byte {byte} of a row of {box.recipe.tensor.name}",
            rule=f"the first coordinate of a box is a multiple of {ALIGNMENT} bytes",
        )  # fmt: skip


# --- loads ------------------------------------------------------------------------------------------------------------
def tma_load(p: Program, s: TmaLoad) -> Callable[[Warp], None]:
    """TmaLoad by a thread: a whole box lands at once and counts its full bytes, also where it is clipped."""
    if s.map not in p.maps:
        raise InternalError(f"no tensor map {s.map!r}", loc=s.loc)
    recipe = p.maps[s.map]
    size = int(np.prod(recipe.box)) * recipe.tensor.dtype.bytes
    if s.bytes != size:
        raise InternalError(f"TmaLoad announces {s.bytes} bytes, its box has {size}", loc=s.loc)
    where, coords = resolver(p, s.dst, size, align=False), _integers(p, s.coords, "a coordinate of the box")
    cast = None if s.multicast is None else p.scope.value(s.multicast)
    find, number = barrier(p, s.bar), p.number(s)

    def run(w: Warp) -> None:
        for lanes in _askers(w, s):
            one(w, lanes)

    def one(w: Warp, lanes: Any) -> None:
        if cast is not None and uniform(w, cast.read(w), "the multicast mask") != 1:
            raise fault(w, "barrier", "a multicast to other blocks", rule="the thread machine runs one block at a time")
        box, at, bar = _box(w, s.map), coords(w), find(w)
        space, base = where(w, lanes)
        _aligned(w, int(base[0]), 128, s.dst.buffer)
        _begins(w, box, at)
        far = w.block.tensor(recipe.tensor)
        near, inside, source = box.place(int(base[0])), box.inside(at), box.source(at)
        check_inside(far, source[inside], box.item, s.map)
        thread = int(w.threads[lanes[0]])
        if far.shadow is not None:
            far.shadow.read_by_engine(w, thread, source[inside] // far.unit, number, bar.agent, bar.phase + 1)

        def data() -> tuple[Array, Array]:
            raw = np.broadcast_to(fill_bytes(box), (near.size, box.item)).copy()
            raw[inside] = far.read(source[inside], box.item)
            known = np.ones(near.size, dtype=bool)
            known[inside] = far.defined[source[inside] // far.unit]
            return raw, known

        _load(w, s, bar, space, near[:, None] + np.arange(box.item), data, thread, number)

    return run


def bulk_load(p: Program, s: BulkLoad) -> Callable[[Warp], None]:
    """BulkLoad by a thread: consecutive bytes, both sides at multiples of 16."""
    size_of = _integers(p, (s.bytes,), "the number of bytes")
    to, source = _bytes_at(p, s.dst), _bytes_at(p, s.src)
    find, number = barrier(p, s.bar), p.number(s)

    def run(w: Warp) -> None:
        for lanes in _askers(w, s):
            one(w, lanes)

    def one(w: Warp, lanes: Any) -> None:
        size, bar = _bulk_size(w, size_of(w)[0]), find(w)
        space, base = to(w, lanes, size)
        far, first = source(w, lanes, size)
        thread = int(w.threads[lanes[0]])
        units = np.unique(np.arange(first, first + size) // far.unit)
        if far.shadow is not None:
            far.shadow.read_by_engine(w, thread, units, number, bar.agent, bar.phase + 1)

        def data() -> tuple[Array, Array]:
            known = np.repeat(far.defined[units], far.unit)[:size]
            return far.raw[first : first + size][:, None].copy(), known

        _load(w, s, bar, space, np.arange(base, base + size)[:, None], data, thread, number)

    return run


def _load(w: Warp, s: Any, bar: Any, space: Space, at: Array, data: Any, thread: int, number: int) -> None:
    """Checks the destination against all earlier accesses and sends the copy off."""
    block, shadow = w.block, space.shadow
    block.barriers.check_use(w, bar, np.array([thread]))
    shadow.check_overwrite(w, thread, at.ravel(), "async")
    shadow.mark_write(at.ravel(), bar.agent, bar.phase + 1, number, asynchronous=True)
    bar.loads, bar.load = bar.phase + 1, s

    def land() -> None:
        raw, known = data()
        space.raw[at] = raw
        space.defined[at] = known[:, None]
        block.barriers.receive(w, bar, raw.size, s)

    block.submit(Work(land, w, s, bar=bar))


# --- stores -----------------------------------------------------------------------------------------------------------
def tma_store(p: Program, s: TmaStore) -> Callable[[Warp], None]:
    """TmaStore by one thread: what lies outside the tensor is dropped; a reduction is atomic an element."""
    if s.map not in p.maps:
        raise InternalError(f"no tensor map {s.map!r}", loc=s.loc)
    recipe = p.maps[s.map]
    size = int(np.prod(recipe.box)) * recipe.tensor.dtype.bytes
    where, coords = resolver(p, s.src, size, align=False), _integers(p, s.coords, "a coordinate of the box")
    number = p.number(s)

    def run(w: Warp) -> None:
        lanes = one_thread(w)
        box, at = _box(w, s.map), coords(w)
        space, base = where(w, lanes)
        _aligned(w, int(base[0]), 128, s.src.buffer)
        _begins(w, box, at)
        far = w.block.tensor(recipe.tensor)
        near, inside, target = box.place(int(base[0])), box.inside(at), box.source(at)
        check_inside(far, target[inside], box.item, s.map)
        from_bytes = near[:, None] + np.arange(box.item)
        _store(w, s, lanes, space, from_bytes, from_bytes[inside], far, target[inside], number)

    return run


def bulk_store(p: Program, s: BulkStore) -> Callable[[Warp], None]:
    """BulkStore by one thread; a reduction is atomic an element of the tensor's type."""
    size_of = _integers(p, (s.bytes,), "the number of bytes")
    to, source, number = _bytes_at(p, s.dst), _bytes_at(p, s.src), p.number(s)
    item = s.dst.buffer.dtype.bytes

    def run(w: Warp) -> None:
        lanes = one_thread(w)
        size = _bulk_size(w, size_of(w)[0])
        far, first = to(w, lanes, size)
        space, base = source(w, lanes, size)
        at = np.arange(base, base + size).reshape(-1, item)
        _store(w, s, lanes, space, at, at, far, np.arange(first, first + size, item), number)

    return run


def _store(
    w: Warp, s: Any, lanes: Array, space: Space, reads: Array, held: Array, far: Space, target: Array, number: int
) -> None:  # fmt: skip
    """Reads `held` ((elements, bytes) of shared memory) and writes them to `target` bytes of the tensor."""
    block, thread = w.block, int(w.threads[lanes[0]])
    source, units = reads.ravel(), target // far.unit
    space.shadow.read(w, thread, source, number, via="async")
    known = space.defined[held]
    if not known.all():
        raise fault(
            w, "undefined", f"{space.shadow.label(int(held[~known][0]))} was never written and is stored to {far.name}",
            rule="what reaches global memory is defined", fix="write the whole box first",
        )  # fmt: skip
    reading = Pending("store", w, s, block.next_serial())
    space.shadow.begin_read(reading, source)
    writing = None
    if s.reduce:
        far.shadow.write(w, thread, units, number, atomic=True)
    else:
        far.shadow.check_overwrite(w, thread, units, "async")
        writing = Pending("stored", w, s, block.next_serial())
        far.shadow.begin_write(writing, units)

    def move() -> None:
        values = np.ascontiguousarray(space.raw[held]).view(far.typed.dtype)[:, 0]
        if s.reduce:
            if not far.defined[units].all():
                raise fault(w, "undefined", f"{far.name} is reduced into before it was written", at=s)
            combine = scalars.binary(s.reduce, s.dst.buffer.dtype if isinstance(s, BulkStore) else _map_dtype(w, s))
            far.typed[units] = combine(far.typed[units], values)
        else:
            far.typed[units] = values
            far.defined[units] = True

    work = block.submit(Work(move, w, s))
    mask = np.zeros(w.lanes, dtype=bool)
    mask[lanes] = True

    def finish(waited: Array, reads_only: bool) -> None:
        block.land(work)
        if not group.read_waited:
            group.read_waited = True
            space.shadow.end_read(reading, source)
            space.shadow.mark_read(w, thread, source, number)
        if not reads_only and group.lanes.any():
            group.lanes = np.zeros_like(mask)
            if writing is not None:
                far.shadow.end_write(writing, units, True)
                far.shadow.mark_write(units, thread, block.clocks.now[w.index], number, asynchronous=True)

    group = GroupWork(mask, finish, s)
    add(w, "bulk", group)


def _map_dtype(w: Warp, s: TmaStore) -> Any:
    return w.block.program.maps[s.map].tensor.dtype


# --- 1-D copies -------------------------------------------------------------------------------------------------------
def _bulk_size(w: Warp, size: int) -> int:
    if size <= 0 or size % 16:
        raise fault(w, "bytes", f"a bulk copy of {size} bytes", rule="bulk copies move a positive multiple of 16 bytes")
    return size


def _bytes_at(p: Program, addr: Any) -> Callable[[Warp, Any, int], tuple[Space, int]]:
    """First byte of a run whose length is known at run time, aligned to 16 and inside its buffer."""
    made: dict[int, Any] = {}

    def find(w: Warp, lanes: Any, size: int) -> tuple[Space, int]:
        if size not in made:
            made[size] = resolver(p, addr, size, align=False)
        space, base = made[size](w, lanes)
        _aligned(w, int(base[0]) + space.skew, 16, addr.buffer)
        return space, int(base[0])

    return find
