"""Warpgroup products through matrix descriptors: the bytes that the descriptors name, found by the tiles' layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SimulationError
from ...ir.dtype import DTYPES, DType
from ...ir.expr import Buffer
from ...layout.atoms import BITS, FIELD_BITS
from ...layout.descriptor import Descriptor, operand_offsets
from ...layout.fragment import Fragment
from ...layout.mma_sp import gives
from ...layout.wgmma import wgmma_a_fragment, wgmma_metadata_fragment
from ...ops.descriptor_product import UNIT, Described, DescriptorProduct, Held
from . import rounding
from .access import load
from .affine import Affine
from .matrix_element import cut, dense_rows, meaningless
from .state import State
from .taint import never_written, undefined_of
from .write import store

if TYPE_CHECKING:
    from .program import Program

GROUP = 128
Values = Callable[[State], np.ndarray]


def compile_product(s: DescriptorProduct, depth: int, program: Program) -> Callable[[State], None]:
    """`acc (+)= a · b`: done at once, sums rounded once to the accumulator's type."""
    atom = s.atom
    if isinstance(s.a, Described):
        a = _described(s.a, (64, atom.stored_k), depth, program)
    else:
        a = _rows(s.a, wgmma_a_fragment(atom.a_dtype), program)
    if s.meta is not None:
        a = _filled(s, a, s.meta, program)
    b = _described(s.b, (atom.n, atom.k), depth, program)
    old, zero = _rows(s.acc, atom.c, program), program.expression(s.zero, depth)
    wide = DTYPES["int64" if atom.c_dtype == "int32" else "float64"]
    narrow = cut if atom.a_dtype == "tfloat32" else lambda x: x
    keep = _keep(s.acc, atom.c, program)

    def run(st: State) -> None:
        _whole_groups(st, s)
        left, right = (narrow(x(st)).astype(wide.numpy) for x in (a, b))
        total = left @ right.swapaxes(-1, -2)
        fresh = _of_groups(st, zero(st))[..., None, None]
        if not np.all(fresh):
            total = total + np.where(fresh, 0, old(st).astype(wide.numpy))
        keep(st, total, wide)

    return run


def _described(x: Described, extents: tuple[int, int], depth: int, program: Program) -> Values:
    """(…, groups, mn, k): the elements behind a descriptor."""
    layout, item = program.layouts[x.tile], x.tile.dtype.bytes
    starts = [program.expression(i, depth) for i in x.starts]
    units = program.expression(x.units, depth)
    d = Descriptor(0, x.leading, x.stride, x.swizzle, x.major == "mn")
    coordinates = layout.inverse_table()

    def read(st: State) -> np.ndarray:
        at = [_of_groups(st, i(st)) for i in starts]
        first = np.asarray(layout.offset(*at)) * item + _of_groups(st, units(st)) * UNIT
        first = np.where(_active(st), first, 0).astype(np.int64)
        place = operand_offsets(d, *extents, item, first[..., None, None]) // item
        if place.min() < 0 or place.max() >= layout.size:
            raise _outside(x, int(place.min()) * item, int(place.max() + 1) * item)
        found = coordinates[place]
        if (found < 0).any():
            raise SimulationError(
                f"a descriptor reads padding of `{x.tile.name}`", rule="a descriptor reads elements", loc=x.loc
            )
        flat = found.reshape(*found.shape[:-4], -1, found.shape[-1])
        index = [flat[..., i] for i in range(flat.shape[-1])]
        slot = st.slot(x.tile)
        if slot.undefined is not None and np.any(load(st, slot, index, x.loc, undefined_of(slot))):
            raise never_written(x.tile.name, "a warpgroup product", x.loc)
        value = load(st, slot, index, x.loc)
        return np.broadcast_to(value, (*value.shape[:-1], flat.shape[-2])).reshape(*value.shape[:-1], *place.shape[-3:])

    return read


def _outside(x: Described, first: int, last: int) -> SimulationError:
    return SimulationError(
        f"a descriptor reads bytes {first} to {last} of `{x.tile.name}`, outside of it",
        rule="a descriptor stays inside its tile",
        fix="check its start, its offsets (in 16 bytes) and the instruction's shape",
        loc=x.loc,
    )


def _of_groups(st: State, value: Any) -> np.ndarray:
    """A value of every thread as one of every warpgroup: its first thread's."""
    dense = np.asarray(value.dense() if isinstance(value, Affine) else value)
    dense = dense.reshape((1,) * st.base) if dense.ndim == 0 else dense
    return np.broadcast_to(dense, (*dense.shape[:-1], st.threads))[..., ::GROUP]


def _active(st: State) -> np.ndarray:
    return _of_groups(st, st.mask)


def _whole_groups(st: State, s: DescriptorProduct) -> None:
    mask = np.broadcast_to(st.mask, (*np.shape(st.mask)[:-1], st.threads)) if np.ndim(st.mask) else None
    if st.threads % GROUP:
        raise SimulationError(
            f"a warpgroup product by {st.threads} threads", rule="they are whole warpgroups of 128", loc=s.loc
        )
    if mask is not None:
        groups = mask.reshape(*mask.shape[:-1], -1, GROUP)
        if (groups.any(axis=-1) != groups.all(axis=-1)).any():
            raise SimulationError(
                "a warpgroup product by part of a warpgroup", rule="128 threads execute it together",
                fix="move it out of the branch on the thread index", loc=s.loc,
            )  # fmt: skip


def _places(x: Held, program: Program) -> Callable[[State, int], list[Any]]:
    """Where register `e` of the run is: the indices of its element for every thread."""
    start = program.expression(x.start, 0)
    if x.buffer.space != "fragment":
        return lambda st, e: [_first(st, start(st), x) + e]
    layout: Fragment = program.layouts[x.buffer]
    table = layout.table()

    def place(st: State, e: int) -> list[Any]:
        held = table[np.arange(st.threads) % table.shape[0], _first(st, start(st), x) + e]
        return [held[:, d].reshape((1,) * (st.base - 1) + (-1,)) for d in range(held.shape[-1])]

    return place


def _first(st: State, start: Any, x: Held) -> int:
    """The first register, which is the same for all threads."""
    found = np.unique(_of_groups(st, start))
    if len(found) != 1:
        raise SimulationError(
            f"registers of `{x.buffer.name}` at a place that differs between threads",
            rule="registers are numbered while compiling", fix="unroll the loop around it (T.unroll)", loc=x.loc,
        )  # fmt: skip
    return int(found[0])


def _registers(x: Held, program: Program, giving: Any = True) -> Values:
    """(…, groups, 128 threads, registers); the threads of each group that are `giving` have defined them."""
    place = _places(x, program)

    def read(st: State) -> np.ndarray:
        slot, parts = st.slot(x.buffer), []
        asked = np.logical_and(st.mask, np.resize(giving, st.threads))
        for e in range(x.count):
            at = place(st, e)
            if slot.undefined is not None and np.any(
                np.logical_and(load(st, slot, at, x.loc, undefined_of(slot)), asked)
            ):
                raise never_written(x.buffer.name, "a warpgroup product", x.loc)
            value = load(st, slot, at, x.loc)
            parts.append(np.broadcast_to(value, (*value.shape[:-1], st.threads)))
        held = np.stack(np.broadcast_arrays(*parts), axis=-1)
        return held.reshape(*held.shape[:-2], -1, GROUP, x.count)

    return read


def _rows(x: Held, part: Fragment, program: Program) -> Values:
    """(…, groups, rows, columns) from the registers of 128 threads each."""
    registers, table = _registers(x, program), part.table()

    def read(st: State) -> np.ndarray:
        held = registers(st)
        out = np.zeros((*held.shape[:-2], *part.shape), held.dtype)
        out[..., table[..., 0], table[..., 1]] = held
        return out

    return read


def _filled(s: DescriptorProduct, stored: Values, meta: Held, program: Program) -> Values:
    """The dense rows of (…, groups, 64, held elements), by the metadata of the lanes that give it."""
    bits = BITS[s.atom.a_dtype]
    part = wgmma_metadata_fragment(bits, FIELD_BITS)
    giving = np.tile(gives(part, s.selector), GROUP // 32)
    registers = _registers(meta, program, giving)

    def read(st: State) -> np.ndarray:
        words = registers(st)[..., giving, :]
        dense, wrong = dense_rows(stored(st), words, meta.buffer.dtype.bits, part, giving, bits)
        if np.logical_and(wrong, _active(st)).any():
            raise meaningless("a sparse warpgroup product", meta.buffer.name, s.loc)
        return dense

    return read


def _keep(x: Held, part: Fragment, program: Program) -> Callable[[State, np.ndarray, DType], None]:
    place, table = _places(x, program), part.table()
    to: Buffer = x.buffer

    def write(st: State, total: np.ndarray, source: DType) -> None:
        held = total[..., table[..., 0], table[..., 1]]
        value = rounding.convert(held.reshape(*held.shape[:-3], -1, held.shape[-1]), source, to.dtype)
        slot = st.slot(to, write=True)
        for e in range(x.count):
            store(st, slot, place(st, e), np.ascontiguousarray(value[..., e]), x.loc, None)

    return write
