"""TmaLoad and TmaStore: one thread asks, the copy engine moves a box of a described tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.instr import TmaLoad, TmaStore
from .boxes import Box, check_inside, fill_bytes
from .engine import aligned, askers, begin_load, begin_store, integers, one_thread
from .faults import fault
from .memory import ALIGNMENT, resolver, uniform
from .program import Program
from .waits import barrier
from .warp import Warp

Array = Any


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


def _begins(w: Warp, box: Box, coords: list[int]) -> None:
    """The instruction is illegal on a box that begins inside of 16 bytes of a row."""
    byte = coords[0] * box.item
    if byte % ALIGNMENT:
        raise fault(
            w, "alignment", f"a box begins at byte {byte} of a row of {box.recipe.tensor.name}",
            rule=f"the first coordinate of a box is a multiple of {ALIGNMENT} bytes",
        )  # fmt: skip


def tma_load(p: Program, s: TmaLoad) -> Callable[[Warp], None]:
    """TmaLoad by a thread: a whole box lands at once and counts its full bytes, also where it is clipped."""
    if s.map not in p.maps:
        raise InternalError(f"no tensor map {s.map!r}", loc=s.loc)
    recipe = p.maps[s.map]
    size = int(np.prod(recipe.box)) * recipe.tensor.dtype.bytes
    if s.bytes != size:
        raise InternalError(f"TmaLoad announces {s.bytes} bytes, its box has {size}", loc=s.loc)
    where, coords = resolver(p, s.dst, size, align=False), integers(p, s.coords, "a coordinate of the box")
    cast = None if s.multicast is None else p.scope.value(s.multicast)
    find, number = barrier(p, s.bar), p.number(s)

    def run(w: Warp) -> None:
        for lanes in askers(w, s):
            one(w, lanes)

    def one(w: Warp, lanes: Any) -> None:
        if cast is not None and uniform(w, cast.read(w), "the multicast mask") != 1:
            raise fault(w, "barrier", "a multicast to other blocks", rule="the thread machine runs one block at a time")
        box, at, bar = _box(w, s.map), coords(w), find(w)
        space, base = where(w, lanes)
        aligned(w, int(base[0]), 128, s.dst.buffer)
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

        begin_load(w, s, bar, space, near[:, None] + np.arange(box.item), data, thread, number)

    return run


def tma_store(p: Program, s: TmaStore) -> Callable[[Warp], None]:
    """TmaStore by one thread: what lies outside the tensor is dropped; a reduction is atomic an element."""
    if s.map not in p.maps:
        raise InternalError(f"no tensor map {s.map!r}", loc=s.loc)
    recipe = p.maps[s.map]
    size = int(np.prod(recipe.box)) * recipe.tensor.dtype.bytes
    where, coords = resolver(p, s.src, size, align=False), integers(p, s.coords, "a coordinate of the box")
    number = p.number(s)

    def run(w: Warp) -> None:
        lanes = one_thread(w)
        box, at = _box(w, s.map), coords(w)
        space, base = where(w, lanes)
        aligned(w, int(base[0]), 128, s.src.buffer)
        _begins(w, box, at)
        far = w.block.tensor(recipe.tensor)
        near, inside, target = box.place(int(base[0])), box.inside(at), box.source(at)
        check_inside(far, target[inside], box.item, s.map)
        from_bytes = near[:, None] + np.arange(box.item)
        begin_store(
            w,
            s,
            lanes,
            space,
            from_bytes,
            from_bytes[inside],
            far,
            target[inside],
            number,
            recipe.tensor.dtype,
        )

    return run
