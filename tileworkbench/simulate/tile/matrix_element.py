"""Matrix instructions of a warp on what its lanes hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InternalError, Loc, SimulationError
from ...ir.dtype import DTYPES, DType
from ...ir.stmt import Region
from ...layout.atoms import BITS, FIELD_BITS
from ...layout.fragment import Fragment
from ...layout.ldmatrix import ROWS, matrix_fragment
from ...layout.mma_sp import gives
from ...ops.gemm.sparse import expand
from ...ops.matrix_element import MatrixLoad, MatrixProduct
from . import rounding
from .access import load
from .affine import Affine, add
from .state import State
from .taint import never_written, undefined_of
from .write import store

if TYPE_CHECKING:
    from .program import Program

WARP = 32


def compile_product(s: MatrixProduct, depth: int, program: Program) -> Callable[[State], None]:
    """`acc += a · b`: operands as the lanes hold them, sums rounded once to the accumulator's type."""
    a_part, b_part, c_part = s.atom.fragments()
    a_at, b_at, c_at = (_indices(r, depth, program) for r in (s.a, s.b, s.acc))
    fill = None if s.meta is None else _filled(s, s.meta, depth, program)
    tf32 = s.atom.a_dtype == "tfloat32"
    wide = DTYPES["int64" if s.acc.buffer.dtype.is_int else "float64"]

    def run(st: State) -> None:
        _whole_warps(st, s, s.called)
        a = _matrix(_held(st, s.a, a_at, "a matrix product"), a_part)
        a = a if fill is None else fill(st, a)
        b = _matrix(_held(st, s.b, b_at, "a matrix product"), b_part)
        c = _matrix(_held(st, s.acc, c_at, "a matrix product's accumulator"), c_part)
        if tf32:
            a, b = cut(a), cut(b)
        total = a.astype(wide.numpy) @ b.astype(wide.numpy).swapaxes(-1, -2) + c.astype(wide.numpy)
        _keep(st, s.acc, c_at, _lanes(total, c_part), wide)

    return run


def _filled(s: MatrixProduct, meta: Region, depth: int, program: Program) -> Callable[[State, np.ndarray], np.ndarray]:
    """Makes the dense rows of (…, warps, 16, held elements) by the metadata of the lanes that give it."""
    at, part = _indices(meta, depth, program), s.atom.metadata
    if part is None:
        raise InternalError(f"{s.atom.instruction} takes no metadata", loc=s.loc)
    giving = gives(part, s.selector)
    bits = meta.buffer.dtype.bits

    def run(st: State, held: np.ndarray) -> np.ndarray:
        words = _held(st, meta, at, "a matrix product's metadata", giving)[..., giving, :]
        dense, wrong = dense_rows(held, words, bits, part, giving, BITS[s.atom.a_dtype])
        if np.logical_and(wrong, _active(st)).any():
            raise meaningless(s.called, meta.buffer.name, s.loc)
        return dense

    return run


def dense_rows(
    held: np.ndarray, words: np.ndarray, bits: int, part: Fragment, giving: np.ndarray, item_bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of (…, rows, held elements) of `item_bits` with zeros between, and where some field of an instruction
    has no meaning (…). `words`, of `bits` each, are those of the lanes that are `giving`; `part` says whose fields."""
    table, shifts = part.table()[giving], np.arange(0, bits, FIELD_BITS)
    fields = (words[..., None].astype(np.int64) >> shifts & 15).reshape(*words.shape[:-1], -1)
    rows = np.zeros((*fields.shape[:-2], *part.shape), np.int64)
    rows[..., table[..., 0], table[..., 1]] = fields
    lead = np.broadcast_shapes(held.shape[:-2], rows.shape[:-2])
    held, rows = np.broadcast_to(held, (*lead, *held.shape[-2:])), np.broadcast_to(rows, (*lead, *part.shape))
    dense, wrong = expand(held, rows, FIELD_BITS, item_bits)
    return np.asarray(dense), np.asarray(wrong.any(axis=(-1, -2)))


def meaningless(what: str, name: str, loc: Loc | None) -> SimulationError:
    """The error for metadata whose fields name no two places."""
    return SimulationError(
        f"{what}: the metadata `{name}` places two elements at once",
        rule="a field holds two rising 2-bit indices (for 32-bit elements it is 0b0100 or 0b1110)",
        fix="make A and its metadata by one compression, and give the lanes that hold it as sparse_selector",
        loc=loc,
    )


def _active(st: State) -> Any:
    """Which warps are: (…, warps)."""
    mask = st.mask
    if not isinstance(mask, np.ndarray) or mask.shape[-1] == 1:
        return mask
    return mask.reshape(*mask.shape[:-1], -1, WARP).any(axis=-1)


def compile_load(s: MatrixLoad, depth: int, program: Program) -> Callable[[State], None]:
    """Rows that the lanes point to, dealt out to all of them."""
    source = s.src.buffer
    indices = [program.expression(i, depth) for i in s.src.starts]
    into = _indices(s.dst, depth, program)
    item = source.dtype.bytes
    part = matrix_fragment(s.count, s.transposed, item)
    width = 16 // item

    def run(st: State) -> None:
        _whole_warps(st, s, "T.ptx_ldmatrix")
        slot = st.slot(source)
        at = [_pointed(st, i(st), ROWS * s.count) for i in indices]
        rows, marks = [], []
        for e in range(width):
            place = [*at[:-1], at[-1] + e]
            rows.append(load(st, slot, place, s.loc))
            if slot.undefined is not None:
                marks.append(load(st, slot, place, s.loc, undefined_of(slot)))
        mark = _lanes(_stacked(st, marks, s.count), part) if marks else None
        _keep(st, s.dst, into, _lanes(_stacked(st, rows, s.count), part), source.dtype, mark)

    return run


def _pointed(st: State, value: Any, lanes: int) -> np.ndarray:
    """An index of every thread; lanes beyond `lanes` take those of the first ones."""
    array = np.asarray(value.dense() if isinstance(value, Affine) else value)
    array = array.reshape((1,) * st.base) if array.ndim == 0 else array
    full = np.broadcast_to(array, (*array.shape[:-1], st.threads))
    thread = np.arange(st.threads)
    return full[..., thread // WARP * WARP + thread % WARP % lanes]


def _stacked(st: State, elements: list[np.ndarray], count: int) -> np.ndarray:
    """(…, warps, matrices, rows, elements of a row) from one array a row element over the threads."""
    tile = np.stack([np.broadcast_to(x, (*x.shape[:-1], st.threads)) for x in np.broadcast_arrays(*elements)], axis=-1)
    warps = tile.reshape(*tile.shape[:-2], -1, WARP, tile.shape[-1])[..., : ROWS * count, :]
    return warps.reshape(*warps.shape[:-2], count, ROWS, warps.shape[-1])


def _indices(region: Region, depth: int, program: Program) -> list[Callable[[State], Any]]:
    return [program.expression(i, depth) for i in region.starts]


def _whole_warps(st: State, s: Any, what: str) -> None:
    mask = st.mask
    if isinstance(mask, np.ndarray) and mask.shape[-1] > 1:
        warps = mask.reshape(*mask.shape[:-1], -1, WARP)
        if (warps.any(axis=-1) != warps.all(axis=-1)).any():
            raise SimulationError(
                f"{what} by part of a warp", rule="all lanes of a warp execute it together",
                fix="move it out of the branch on the thread index", loc=s.loc,
            )  # fmt: skip
    if st.threads % WARP:
        raise SimulationError(f"{what} by {st.threads} threads", rule="they are whole warps of 32", loc=s.loc)


def _registers(st: State, at: list[Callable[[State], Any]], e: int) -> list[Any]:
    *lead, last = [i(st) for i in at]
    return [*lead, add(last, e) if isinstance(last, int | Affine) else last + e]


def _held(
    st: State, region: Region, at: list[Callable[[State], Any]], sink: str, lanes: np.ndarray | None = None
) -> np.ndarray:
    """(…, warps, 32 lanes, registers); what `lanes` (None: all) hold must have been written."""
    slot, parts = st.slot(region.buffer), []
    asked = True if lanes is None else np.tile(lanes, st.threads // WARP)
    for e in range(int(region.extents[-1])):
        place = _registers(st, at, e)
        if slot.undefined is not None:
            unknown = np.logical_and(load(st, slot, place, region.loc, undefined_of(slot)), st.mask)
            if np.logical_and(unknown, asked).any():
                raise never_written(region.buffer.name, sink, region.loc)
        value = load(st, slot, place, region.loc)
        parts.append(np.broadcast_to(value, (*value.shape[:-1], st.threads)))
    held = np.stack(np.broadcast_arrays(*parts), axis=-1)
    return held.reshape(*held.shape[:-2], -1, WARP, held.shape[-1])


def _keep(
    st: State, region: Region, at: list[Callable[[State], Any]], held: np.ndarray, source: DType, mark: Any = None
) -> None:
    """Writes (…, warps, 32, registers) into the lanes' arrays."""
    slot, to = st.slot(region.buffer, write=True), region.buffer.dtype
    value = rounding.convert(held.reshape(*held.shape[:-3], -1, held.shape[-1]), source, to)
    marks = None if mark is None else mark.reshape(value.shape)
    for e in range(value.shape[-1]):
        undefined = None if marks is None else marks[..., e]
        store(st, slot, _registers(st, at, e), np.ascontiguousarray(value[..., e]), region.loc, undefined)


def _matrix(held: np.ndarray, part: Fragment) -> np.ndarray:
    """Elements by row and column, from lanes and registers."""
    table = part.table()
    out = np.zeros((*held.shape[:-2], *part.shape), held.dtype)
    out[..., table[..., 0], table[..., 1]] = held
    return out


def _lanes(tile: np.ndarray, part: Fragment) -> np.ndarray:
    """The inverse."""
    table = part.table()
    at: tuple[Any, ...] = (..., *(table[..., d] for d in range(part.rank)))
    held: np.ndarray = tile[at]
    return held


def cut(x: np.ndarray) -> np.ndarray:
    """The instruction ignores all but 10 bits of a tf32 operand's mantissa."""
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
