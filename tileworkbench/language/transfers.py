"""Transfers by the copy engine under the names of their instructions: T.ptx_cp_async_bulk."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..ir.dtype import INT64
from ..ir.expr import Buffer, Const, Expr, as_expr, binary, cast
from ..ir.kernel import Kernel
from ..ir.node import walk
from ..ir.region import root
from ..ir.stmt import Region
from ..ops.copies.bulk import UNIT
from ..ops.transfers import BulkTransfer, Transfer
from .barrier import one_barrier
from .builder import Builder, require
from .faults import fault, shown
from .pointers import Pointer
from .views import reshape

_SPACES = {"shared": "shared memory", "global": "global memory"}
LARGE = 2**31  # elements whose numbers 32 bits do not hold
_BULK = ("shared_ptr", "shared_offset", "global_ptr", "global_offset", "bytes", "barrier_id")


def ptx_cp_async_bulk(*args: Any, dtype: Any = None, **named: Any) -> None:
    """`(dtype, shared_ptr, shared_offset, global_ptr, global_offset, bytes, barrier_id)`: each thread that comes copies
    `bytes` consecutive bytes, an int that is a multiple of 16, from `global_offset` elements after `global_ptr` to
    `shared_offset` elements after `shared_ptr`, pointers or whole buffers. The barrier, of T.alloc_barrier, is told of
    the bytes when they are there; the kernel announces them to it. `dtype`, the type of the call's value, may be given
    by name."""
    what = "T.ptx_cp_async_bulk"
    builder = require(what)
    given = dict(zip(_BULK, args if dtype is not None else args[1:], strict=False)) | named
    if set(given) != set(_BULK) or len(args) + len(named) != len(_BULK) + (dtype is None):
        raise fault(f"{what} of {len(args) + len(named)} arguments", f"it takes dtype, {', '.join(_BULK)}", "give all")
    near = pointed(what, "shared_ptr", given["shared_ptr"], "shared", given["shared_offset"])
    far = pointed(what, "global_ptr", given["global_ptr"], "global", given["global_offset"])
    bar = one_barrier(what, given["barrier_id"])
    bulk(what, builder, BulkTransfer, near, far, given["bytes"], bar)


def pointed(what: str, word: str, value: Any, space: str, offset: Any = 0) -> tuple[Buffer, Expr]:
    """A buffer's storage as one row, and the element of it that an address means."""
    buffer, at = place(what, word, value, space)
    step = as_expr(offset)
    if not step.dtype.is_int:
        raise fault(f"{what}: an offset is {step.dtype}", "offsets count elements", "T.cast it to int32")
    return as_row(buffer), binary("add", at, step)


def place(what: str, word: str, value: Any, space: str) -> tuple[Buffer, Expr]:
    """The buffer that an address is in, and the number of its element in the storage."""
    whole = isinstance(value, Buffer)
    pointer = Pointer(value, tuple(as_expr(0) for _ in value.shape), "rw") if whole else value
    if not isinstance(pointer, Pointer) or pointer.buffer.space != space:
        raise fault(
            f"{what}: {word} is {shown(pointer.buffer if isinstance(pointer, Pointer) else value)}",
            f"it is a place in {_SPACES[space]}", f'T.access_ptr(tile[0, 0], "{"w" if space == "shared" else "r"}")',
        )  # fmt: skip
    buffer = pointer.buffer
    if buffer.strides is not None:
        raise fault(f"{what} of `{buffer.name}`, which has strides", "its rows follow one another", "use T.tma_copy")
    if buffer.dtype.is_packed:
        raise fault(f"{what} of `{buffer.name}`, {buffer.dtype}", "its elements are whole bytes", "use T.copy")
    if pointer.place is not None:
        return buffer, pointer.place
    large = space == "global" and (buffer.static_size() or LARGE) >= LARGE
    at, *others = (cast(i, INT64) if large else i for i in pointer.indices)
    for index, extent in zip(others, buffer.shape[1:], strict=True):
        at = binary("add", binary("mul", at, extent), index)
    return buffer, at


def as_row(buffer: Buffer) -> Buffer:
    """The buffer's storage as one row."""
    size = buffer.shape[0]
    for extent in buffer.shape[1:]:
        size = size * extent
    return reshape(buffer, (size,)) if buffer.rank > 1 else buffer


def bulk(
    what: str, builder: Builder, kind: type[BulkTransfer], near: tuple[Buffer, Expr], far: tuple[Buffer, Expr],
    size: Any, bar: Region,
) -> None:  # fmt: skip
    """Emits the transfer of `size` bytes."""
    size = size.value if isinstance(size, Const) else size
    if isinstance(size, bool | Expr) or not hasattr(size, "__index__") or size.__index__() < 1 or size % UNIT:
        raise fault(
            f"{what}: bytes={shown(size)}", f"it moves a multiple of {UNIT} bytes, known while compiling", "use an int"
        )
    dtype = near[0].dtype
    if far[0].dtype is not dtype:
        raise fault(
            f"{what} from {far[0].dtype} to {dtype}", "it moves bytes as they are", "T.view one side as the other's"
        )
    count = int(size) // dtype.bytes
    src, dst = (Region(buffer, (at,), (count,), loc=builder.here) for buffer, at in (far, near))
    builder.emit(kind(bar, src, dst, loc=builder.here))


def filled_layouts(kernel: Kernel) -> Kernel:
    """The kernel, its tiles that transfers fill laid out as those write them, so that every machine knows what lies
    where. LayoutError where an annotation or another transfer lays a tile out in another way."""
    transfers = [n for n in walk(kernel.body) if isinstance(n, Transfer)]
    layouts = dict(kernel.attrs.get("layouts", {}))
    for s in transfers:
        tile, wanted = root(s.dst.buffer), s.layout
        known = layouts.setdefault(tile, wanted)
        if known != wanted:
            raise LayoutError(
                f"T.{s.name} writes `{tile.name}` as {wanted.describe()}, and it is laid out as {known.describe()}",
                rule="one shared tile has one layout",
                fix="drop the annotation, or give all boxes of the tile the same swizzle",
                loc=s.loc,
            )
    return kernel.with_(attrs={**kernel.attrs, "layouts": layouts}) if transfers else kernel
