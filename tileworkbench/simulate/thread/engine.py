"""What the copy engine's transfers share: who asks for one, and what it reads and writes until it has been waited for.

A load's data belong to the barrier's phase from its issue on: whoever touches them must have waited for that phase. A
store reads its source until WaitGroup(bulk, reads_only) and owns its destination until WaitGroup(bulk).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...ir.dtype import DType
from ...ir.expr import Buffer
from ...ir.instr import BulkLoad, TmaLoad
from . import scalars
from .block import Work
from .faults import fault
from .groups import GroupWork, add
from .memory import Space, check_defined, uniform
from .program import Program
from .races import Pending
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


def askers(w: Warp, s: TmaLoad | BulkLoad) -> Iterator[Any]:
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


def integers(p: Program, exprs: tuple[Any, ...], what: str) -> Callable[[Warp], list[int]]:
    """The values of expressions that the lanes that ask agree on."""
    values = [p.scope.value(e) for e in exprs]

    def read(w: Warp) -> list[int]:
        for v in values:
            check_defined(w, v.undefined, what)
        return [uniform(w, v.read(w), what) for v in values]

    return read


def aligned(w: Warp, base: int, multiple: int, buffer: Buffer) -> None:
    """A fault where a transfer's first byte is no multiple of what the engine asks for."""
    if base % multiple:
        where = "" if buffer.space == "global" else "shared "
        raise fault(
            w, "alignment", f"{buffer.name} at {where}byte {base}", rule=f"it starts at a multiple of {multiple} bytes"
        )


def begin_load(w: Warp, s: Any, bar: Any, space: Space, at: Array, data: Any, thread: int, number: int) -> None:
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


def begin_store(
    w: Warp, s: Any, lanes: Array, space: Space, reads: Array, held: Array, far: Space, target: Array, number: int,
    dtype: DType,
) -> None:  # fmt: skip
    """Reads `held` ((elements, bytes) of shared memory) and writes them to `target` bytes of a tensor of `dtype`."""
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
            combine = scalars.binary(s.reduce, dtype)
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
