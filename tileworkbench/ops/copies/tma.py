"""Tensor copies by descriptor (TMA): one thread asks, the copy engine moves whole boxes and counts bytes on a
barrier."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from ...errors import InternalError
from ...ir.arith import Facts
from ...ir.expr import Expr, as_expr
from ...ir.instr import Addr, Bar, BarExpect, CommitGroup, TmaLoad, TmaStore, WaitGroup
from ...ir.kernel import TmaMap
from ...ir.op import Impl, Refusal
from ...ir.region import root
from ...ir.stmt import ZERO, Region, Stmt
from ...layout import SharedLayout
from ...layout.tma import TmaBox, TmaBoxes, swizzle_span, tma_boxes
from ...target import Target
from ..context import Context, row_major_strides
from .pairs import engine_refusal, extent, is_whole, stays_inside, walked

if TYPE_CHECKING:
    from ..copy import Copy

ALIGNMENT = 16  # bytes, of a tensor's start and of its rows
MAX_BOX = 256
MAX_RANK = 5
MOST_BOXES = 64
SHARED_ALIGNMENT = 128  # bytes that the place of every box in shared memory is a multiple of
MAX_COORDINATE = 2**31
NAME = "tma"


def tma_impl(op: Copy, facts: Facts, target: Target) -> Impl | Refusal:
    """A tensor copy in either direction between global and shared memory, or the reason why not."""
    load = op.src.buffer.space == "global"
    far, near = (op.src, op.dst) if load else (op.dst, op.src)
    # A load that the compiler waits for fills a version of its tile.
    parts = op.manual or not load
    reason = engine_refusal(op, target, "tma", "tensor copies") or _refusal(far, near, facts, parts)
    if reason:
        return Refusal(NAME, reason)
    shape = tuple(extent(e) for e in near.extents)
    return Impl(
        NAME,
        "tma",
        "thread",
        "bytes" if load else "group",
        layouts={near.buffer: _layouts(near, near.buffer.dtype.bytes)},
        proxies={near.buffer: "async"},
        cost=5.0,
        bytes=math.prod(shape) * near.buffer.dtype.bytes,
        zeros=far.buffer if load and not stays_inside(far, facts) else None,
        detail={"load": load},
    )


def _refusal(far: Region, near: Region, facts: Facts, parts: bool = False) -> str:
    """`parts`: a part of a tile may be moved."""
    item = far.buffer.dtype.bytes
    if far.buffer.dtype is not near.buffer.dtype:
        return f"it cannot convert {far.buffer.dtype} to {near.buffer.dtype}"
    if not facts.starts_at(ALIGNMENT, root(far.buffer)):
        return f"`{far.buffer.name}` may start elsewhere than at a multiple of {ALIGNMENT} B"
    if far.buffer.rank > MAX_RANK:
        return f"`{far.buffer.name}` has rank {far.buffer.rank}, descriptors go to {MAX_RANK}"
    if not parts and not _whole_slice(near):
        return f"only a part of `{near.buffer.name}` is moved"
    if _corner(near) is None:
        return f"the place in `{near.buffer.name}` is known only at run time"
    if not all(isinstance(extent(e), int) for e in far.extents):
        return "the box is not known while compiling"
    if tuple(extent(far.extents[d]) for d in walked(far)) != tuple(extent(near.extents[d]) for d in walked(near)):
        return "the box has another shape than the tile"
    if any(isinstance(extent(n), int) and extent(n) >= MAX_COORDINATE for n in far.buffer.shape):
        return f"`{far.buffer.name}` has more elements along a dimension than a 32-bit coordinate reaches"
    strides = far.buffer.strides or row_major_strides(far.buffer.shape)
    if extent(strides[-1]) != 1:
        return f"the last dimension of `{far.buffer.name}` is not contiguous"
    for stride in strides[:-1]:
        if not facts.divides(max(1, 16 // item), as_expr(stride)):
            pitch = extent(stride)
            shown = f"{pitch * item} B" if isinstance(pitch, int) else "known only at run time"
            return f"row pitch of `{far.buffer.name}` is {shown}, not surely a multiple of 16 B"
    if not facts.divides(max(1, ALIGNMENT // item), as_expr(far.starts[-1])):
        return f"the box may begin elsewhere than at a multiple of {ALIGNMENT} B of a row of `{far.buffer.name}`"
    inner = extent(near.extents[-1]) * item
    if walked(far) and walked(far)[-1] != far.buffer.rank - 1:
        return "the last dimension of the tensor is not walked"
    if inner % 16:
        return f"rows of the tile are {inner} B, not a multiple of 16 B"
    size = math.prod(near.buffer.shape[_lead(near) :]) * item
    if size % 128:
        return f"`{near.buffer.name}` has {size} B, not a multiple of 128 B: a second version would not be aligned"
    if not _layouts(near, item):
        return f"no boxes of rows of {inner} B fill the tile from places that are multiples of {SHARED_ALIGNMENT} B"
    return ""


def _lead(near: Region) -> int:
    """Leading dimensions of which one slice is moved, wherever it lies."""
    at = next((d for d, e in enumerate(near.extents) if extent(e) != 1), len(near.extents) - 1)
    return max(0, min(at, len(near.extents) - 2))


def _whole_slice(near: Region) -> bool:
    """All of the tile, or one slice of its leading dimensions."""
    at = _lead(near)
    extents = tuple(near.buffer.shape[:at]) + tuple(near.extents[at:])
    return is_whole(Region(near.buffer, (ZERO,) * at + near.starts[at:], extents))


def _corner(near: Region) -> tuple[int, ...] | None:
    """Where the moved part begins in its slice of the leading dimensions; None where only the run tells."""
    at = _lead(near)
    starts = tuple(extent(s) for s in near.starts[at:])
    return (0,) * at + starts if all(isinstance(s, int) for s in starts) else None


def _layouts(near: Region, item: int) -> tuple[SharedLayout, ...]:
    """Shared layouts of the tile that boxes can write, best first: the widest swizzle, then plain rows."""
    tile, shape = tuple(extent(e) for e in near.buffer.shape), tuple(extent(e) for e in near.extents)
    wanted: list[SharedLayout] = []
    if len(shape) >= 2 and shape[-2] > 1:
        wanted += [SharedLayout.swizzled(tile, item, span) for span in (128, 64, 32) if tile[-1] * item % span == 0]
    wanted.append(SharedLayout.row_major(tile))
    return tuple(layout for layout in wanted if _boxes(layout, near, item))


def _boxes(layout: SharedLayout, near: Region, item: int) -> tuple[TmaBox, ...]:
    """The boxes of the moved part."""
    corner = _corner(near)
    return boxes(layout, item, corner, tuple(extent(e) for e in near.extents)) if corner is not None else ()


@cache
def boxes(layout: SharedLayout, item: int, corner: tuple[int, ...], shape: tuple[int, ...]) -> tuple[TmaBox, ...]:
    """Equal boxes that together write this part of the layout, each where the copy engine may write; none when there
    are none."""
    found = tma_boxes(layout, item, corner, shape)
    made = found.boxes if isinstance(found, TmaBoxes) else _pieces_of_a_row(layout, item, corner, shape)
    usable = len(made) <= MOST_BOXES and all(box.start % SHARED_ALIGNMENT == 0 for box in made)
    return made if usable else ()


def _pieces_of_a_row(
    layout: SharedLayout, item: int, corner: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[TmaBox, ...]:
    """A plain row longer than a box, in boxes of the greatest width."""
    if math.prod(shape[:-1]) != 1 or shape[-1] % MAX_BOX or swizzle_span(layout, item) != 0:
        return ()
    lead = (0,) * (len(shape) - 1)
    box, first = (*(1 for _ in lead), MAX_BOX), int(layout.table()[corner])
    return tuple(TmaBox((*lead, at), box, (first + at) * item) for at in range(0, shape[-1], MAX_BOX))


def _map(far: Region, box: tuple[int, ...], layout: SharedLayout, near: Region, ctx: Context) -> TmaMap:
    """The descriptor of `far`'s tensor for this box, shared by copies that use the same one."""
    tensor, item = far.buffer, far.buffer.dtype.bytes
    dims = walked(far)
    tile_dims = list(walked(near))
    full = [1] * tensor.rank
    for tensor_dim, tile_dim in zip(dims, tile_dims, strict=True):
        full[tensor_dim] = box[tile_dim]
    swizzle = swizzle_span(layout, item) or 0
    key = (tensor, tuple(full), swizzle)
    made = ctx.maps.get(key)
    if made is None:
        strides = tensor.strides or row_major_strides(tensor.shape)
        byte_strides = tuple(_times(s, item) for s in reversed(strides[:-1]))
        made = ctx.maps[key] = TmaMap(
            ctx.name(f"{tensor.name}_map"), root(tensor), tuple(reversed(tensor.shape)), byte_strides,
            tuple(reversed(full)), swizzle,
        )  # fmt: skip
    return made


def _times(a: Any, b: int) -> Any:
    return a * b


def issue(op: Copy, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """One instruction per box, by one thread; a store also closes its bulk group."""
    load = impl.detail["load"]
    far, near = (op.src, op.dst) if load else (op.dst, op.src)
    layout = ctx.layouts[near.buffer]
    item = near.buffer.dtype.bytes
    every = _boxes(layout, near, item)
    if not every:
        raise InternalError(f"no boxes of {near.extents} in `{near.buffer.name}`, {layout.describe()}", loc=op.loc)
    box = every[0].box
    recipe = _map(far, box, layout, near, ctx)
    at = _lead(near)
    base = ctx.address(near.buffer, (*near.starts[:at], *(ZERO for _ in near.starts[at:])))
    tile_dims = list(walked(near))
    made: list[Stmt] = []
    bar = ctx.bar
    if load and op.barrier is not None:
        bar = Bar(op.barrier.buffer, ctx.facts.simplify(op.barrier.starts[0]))
        made.append(BarExpect(bar, impl.bytes, "the kernel's copy counts on it", loc=op.loc))
    for one in every:
        starts: list[Expr] = list(far.starts)
        for tensor_dim, tile_dim in zip(walked(far), tile_dims, strict=True):
            starts[tensor_dim] = starts[tensor_dim] + one.origin[tile_dim]
        coords = tuple(ctx.facts.simplify(s) for s in reversed(starts))
        place = Addr(base.buffer, ctx.facts.simplify(base.offset + one.start // item))
        if load:
            if bar is None:
                raise InternalError("a tensor load outside a channel", loc=op.loc)
            size = math.prod(box) * item
            made.append(TmaLoad(place, recipe.name, coords, bar, size, hint=ctx.policy, loc=op.loc))
        else:
            made.append(TmaStore(recipe.name, coords, place, hint=ctx.policy, loc=op.loc))
    if not load:
        made.append(CommitGroup("bulk", loc=op.loc))
    return ctx.elect(*made)


def complete(op: Copy, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """A store's source may be overwritten after this, and what it wrote be touched where another statement does so; a
    load is waited for through its channel."""
    if impl.detail["load"]:
        return ()
    return ctx.elect(WaitGroup("bulk", 0, reads_only=op.dst.buffer not in ctx.touched_again, loc=op.loc))
