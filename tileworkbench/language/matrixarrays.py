"""T.mma_fill and T.mma_store: arrays of matrix instructions, cleared and written out as their lanes hold them."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.expr import Buffer, Expr, Load, Var, as_expr, cast, const
from ..ir.stmt import ONE, ZERO, For, Store
from ..layout.mma import accumulator_fragment
from ..layout.transform import tile
from .builder import require
from .elements import index_to_coordinates
from .faults import fault, shown
from .launch import get_thread_binding
from .matrixinstr import known
from .pointers import Pointer

SIDE, LANES = 16, 32


def mma_fill(dtype: Any, local_size: Any, local_ptr: Any, offset: Any) -> None:
    """`local_size` elements of each thread's array `local_ptr` from `offset` on become 0."""
    builder = require("T.mma_fill")
    array, count = _array(local_ptr, "T.mma_fill"), known(local_size, "local_size", "T.mma_fill")
    i = Var(builder.unique("i"), loc=builder.here)
    zero = as_expr(0, array.dtype)
    body = (Store(array, (as_expr(offset) + i,), zero, loc=builder.here),)
    builder.emit(For(i, ZERO, const(count), ONE, body, "unroll", loc=builder.here))


def mma_store(dtype: Any, m: Any, n: Any, dst_ptr: Any, src_ptr: Any, src_offset: Any, dst_stride: Any) -> None:
    """The 16 × 16 accumulators of two products side by side, 8 elements of each lane's array `src_ptr` from
    `src_offset` on, to rows of `dst_stride` elements from `dst_ptr` (T.access_ptr) on."""
    what = "T.mma_store"
    builder = require(what)
    array = _array(src_ptr, what)
    if (known(m, "m", what), known(n, "n", what)) != (SIDE, SIDE):
        raise fault(f"{what}: {shown(m)} × {shown(n)}", "accumulators of 16 × 16 are stored", "m=16, n=16")
    if not isinstance(dst_ptr, Pointer) or dst_ptr.buffer.space not in ("global", "shared"):
        raise fault(f"{what}: dst_ptr is no such pointer", "it points into a tensor or a shared tile",
                    'T.access_ptr(C[i, j], "w")')  # fmt: skip
    buffer = dst_ptr.buffer
    if buffer.strides is not None:
        raise ShapeError(f"{what} into `{buffer.name}`", rule="the buffer has rows without gaps", fix="T.copy")
    first: Expr = ZERO
    for index, extent in zip(dst_ptr.indices, buffer.shape, strict=True):
        first = first * extent + index
    held = tile(accumulator_fragment(SIDE), (1, 2))
    i = Var(builder.unique("i"), loc=builder.here)
    row, column = held.coords(get_thread_binding() % LANES, i)
    place = index_to_coordinates(first + row * as_expr(dst_stride) + column, buffer.shape)
    value = cast(Load(array, (as_expr(src_offset) + i,), loc=builder.here), buffer.dtype)
    body = (Store(buffer, tuple(as_expr(p) for p in place), value, loc=builder.here),)
    builder.emit(For(i, ZERO, const(held.registers), ONE, body, "unroll", loc=builder.here))


def _array(given: Any, what: str) -> Buffer:
    if not isinstance(given, Buffer) or given.space != "local" or given.rank != 1:
        raise fault(f"{what}: {shown(given)} is no array of each thread", "it is a T.alloc_local((n,), dtype)",
                    "allocate it so")  # fmt: skip
    return given
