"""Storage of the thread level: every shared buffer and barrier has a place, aligned and inside the block's memory."""

from __future__ import annotations

from ..expr import Buffer
from ..instr import BulkLoad, BulkStore, Desc, Instr, TmaLoad, TmaStore, Wgmma
from ..kernel import Kernel
from ..node import Node
from .failure import broken

BARRIER_BYTES = 8
_SPACES = ("shared", "barrier", "reg", "local", "var", "global")
# A swizzle pattern of n bytes repeats after 8 rows; the tile starts at a multiple of that.
_SWIZZLE_ALIGNMENT = {0: 16, 16: 16, 32: 256, 64: 512, 128: 1024}


def check_storage(kernel: Kernel, nodes: tuple[Node, ...], limit: int | None) -> None:
    """Raises InternalError for a buffer without a place, outside shared memory, misaligned or over a barrier."""
    places: list[tuple[int, int, Buffer]] = []
    for b in kernel.buffers:
        if b.space not in _SPACES:
            raise broken(f"{b.name} is in {b.space} memory", b, f"thread-level buffers are in {', '.join(_SPACES)}")
        if b.static_size() is None:
            raise broken(f"{b.name} has no constant size", b, "storage of the thread level has constant extents")
        if b.space in ("shared", "barrier") and kernel.offsets:  # none before the shared plan is made
            places.append(_place(kernel, b))
    if limit is not None and kernel.shared_bytes > limit:
        raise broken(f"{kernel.shared_bytes} bytes of shared memory", kernel, f"a block has at most {limit}")
    for start, end, b in places:
        for low, high, other in places:
            if b.space == "barrier" and other is not b and start < high and low < end:
                raise broken(f"barrier {b.name} and {other.name} overlap", b, "a barrier's bytes are its own")
    _alignments(kernel, nodes)


def _place(kernel: Kernel, b: Buffer) -> tuple[int, int, Buffer]:
    offset = kernel.offsets.get(b)
    if offset is None:
        raise broken(f"{b.name} has no offset", b, "every shared buffer and barrier is placed")
    size = (b.static_size() or 0) * (BARRIER_BYTES if b.space == "barrier" else b.dtype.bytes)
    if offset < 0 or offset + size > kernel.shared_bytes:
        raise broken(f"{b.name} takes bytes {offset} to {offset + size}", b, f"the block has {kernel.shared_bytes}")
    alignment = BARRIER_BYTES if b.space == "barrier" else max(16, b.attr("alignment", 16))
    if offset % alignment:
        raise broken(f"{b.name} is at {offset}", b, f"its alignment is {alignment}")
    return offset, offset + size, b


def _alignments(kernel: Kernel, nodes: tuple[Node, ...]) -> None:
    """What copy engines and matrix instructions ask of the places they touch."""
    maps = {m.name: m for m in kernel.maps}
    for n in nodes:
        if not isinstance(n, Instr):
            continue
        if isinstance(n, (TmaLoad, TmaStore)):
            known = maps.get(n.map)
            if known is None:
                raise broken(f"tensor map {n.map!r} is not the kernel's", n, "maps are listed in the kernel")
            if len(n.coords) != len(known.box):
                raise broken(f"{len(n.coords)} coordinates", n, f"the box of {n.map} has {len(known.box)} dimensions")
            place = n.dst if isinstance(n, TmaLoad) else n.src
            _aligned(kernel, place.buffer, max(128, _SWIZZLE_ALIGNMENT.get(known.swizzle, 16)), n)
        elif isinstance(n, BulkLoad):
            _aligned(kernel, n.dst.buffer, 16, n)
        elif isinstance(n, BulkStore):
            _aligned(kernel, n.src.buffer, 16, n)
        elif isinstance(n, Wgmma):
            for d in (n.a, n.b):
                if isinstance(d, Desc):
                    _aligned(kernel, d.addr.buffer, _SWIZZLE_ALIGNMENT.get(d.swizzle, 16), n)


def _aligned(kernel: Kernel, b: Buffer, alignment: int, at: object) -> None:
    if b.space != "shared" or kernel.offsets.get(b, 0) % alignment:
        where = kernel.offsets.get(b, b.space)
        raise broken(f"{b.name} is at {where}", at, f"this needs shared memory at a multiple of {alignment}")  # type: ignore[arg-type]
