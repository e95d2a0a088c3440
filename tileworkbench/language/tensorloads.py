"""T.tma_load: boxes of described tensors, or consecutive bytes, into shared memory by the instruction itself."""

from __future__ import annotations

import math
from typing import Any

from ..ir.expr import Buffer, Const, Expr, as_expr, binary
from ..ir.region import root
from ..ir.stmt import Region
from ..ops.tensor_transfer import TensorTransfer
from ..ops.transfers import PointerLoad
from .barrier import one_barrier
from .builder import Builder, require
from .descriptors import Descriptor
from .elements import index_to_coordinates
from .faults import fault, shown
from .transfers import as_row, bulk, place, pointed


def tma_load(*args: Any) -> None:
    """`(descriptor, mbarrier, smem_addr, coord…, eviction_policy)`: each thread that comes loads the box at these
    coordinates, innermost first, of the tensor of T.create_tma_descriptor to a place in shared memory, that of the
    storage, whatever the layout. What is outside the tensor becomes the descriptor's fill. The policy, 0 (normal), 1
    (first out) or 2 (last out), may be left out. Or `(smem_addr, global_addr, mbarrier, bytes)`, consecutive bytes.
    The barrier is told of all bytes when they are there; the kernel announces them to it."""
    what = "T.tma_load"
    builder = require(what)
    if args and isinstance(args[0], Descriptor):
        described(what, builder, args[0], *args[1:])
        return
    if len(args) not in (4, 5):
        raise fault(
            f"{what} of {len(args)} arguments without a descriptor",
            "it takes a descriptor, a barrier, a place and coordinates, or two places, a barrier and bytes",
            'T.tma_load(T.create_tma_descriptor(…), bar[0], T.access_ptr(tile[0, 0], "w"), x, y)',
        )
    if len(args) == 5 and policy_of(what, args[4]):
        raise fault(f"{what} of bytes: eviction_policy={shown(args[4])}", "it has none", "leave it out")
    near, far = pointed(what, "smem_addr", args[0], "shared"), pointed(what, "global_addr", args[1], "global")
    bulk(what, builder, PointerLoad, near, far, args[3], one_barrier(what, args[2]))


def described(what: str, builder: Builder, desc: Descriptor, *args: Any) -> None:
    """T.tma_load with a descriptor."""
    rank = len(desc.box)
    if len(args) not in (2 + rank, 3 + rank):
        raise fault(
            f"{what} of {len(args) - 2} coordinates and policies for a descriptor of rank {rank}",
            "a box has a coordinate a dimension, innermost first, then perhaps an eviction policy", "give them all",
        )  # fmt: skip
    bar = one_barrier(what, args[0])
    buffer, at = place(what, "smem_addr", args[1], "shared")
    coords = tuple(as_expr(c) for c in args[2 : 2 + rank])
    bad = next((c for c in coords if not c.dtype.is_int), None)
    if bad is not None:
        raise fault(f"{what}: a coordinate is {bad.dtype}", "coordinates are whole numbers", "T.cast it to int32")
    if buffer.dtype is not desc.tensor.dtype:
        raise fault(
            f"{what} from {desc.tensor.dtype} to {buffer.dtype}", "it moves elements as they are", "T.view one side"
        )
    src = Region(desc.tensor, tuple(reversed(coords)), desc.box, loc=builder.here)
    dst = panel(what, buffer, at, desc, builder) if desc.swizzle else _run(as_row(buffer), at, desc.box, builder)
    policy = policy_of(what, args[2 + rank]) if len(args) > 2 + rank else ""
    builder.emit(TensorTransfer(bar, src, dst, at, desc.swizzle, desc.fill, desc.l2, policy, loc=builder.here))


def _run(row: Buffer, at: Expr, box: tuple[int, ...], builder: Builder) -> Region:
    return Region(row, (at,), (math.prod(box),), loc=builder.here)


def policy_of(what: str, given: Any) -> str:
    """The name of an eviction policy by its number; nothing for the normal one."""
    number = given.value if isinstance(given, Const) else given
    if isinstance(number, bool | Expr) or number not in (0, 1, 2):
        raise fault(f"{what}: eviction_policy={shown(given)}", "it is 0 (normal), 1 (first out) or 2 (last out)", "0")
    return ("", "evict_first", "evict_last")[int(number)]


def panel(what: str, given: Buffer, at: Expr, desc: Descriptor, builder: Builder) -> Region:
    """The rows of the tile that a swizzled box is: the storage of a swizzled tile is panels as wide as the pattern, one
    after another."""
    tile, item = root(given), given.dtype.bytes
    wide, rows = desc.swizzle // item, math.prod(desc.box[:-1])
    fits = tile.dtype is given.dtype and tile.rank > 1 and tile.shape[-1] % wide == 0 and tile.shape[-2] % 8 == 0
    if not fits or rows > tile.shape[-2]:
        raise fault(
            f"{what}: a box of {rows} rows of {desc.swizzle} bytes, swizzled, into `{tile.name}`, {shown(tile.shape)}",
            f"such a tile's rows are made of parts of {desc.swizzle} bytes, and each part holds the box's rows",
            "give the tile the shape of the boxes that fill it",
        )
    high, pitch = tile.shape[-2], tile.shape[-1]
    slice_, inside = binary("floordiv", at, high * pitch), binary("floormod", at, high * pitch)
    row = binary("floordiv", binary("floormod", inside, high * wide), wide)
    column = binary("mul", binary("floordiv", inside, high * wide), wide)
    lead = index_to_coordinates(slice_, tile.shape[:-2]) if tile.rank > 2 else []
    starts = (*(as_expr(n) for n in lead), row, column)
    return Region(tile, starts, (*(1 for _ in lead), rows, wide), loc=builder.here)
