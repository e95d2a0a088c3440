"""Offsets of everything in shared memory: tiles where the plan put them, then the ops' scratch, then barriers; and the
sum held against the target's limit, as is what a thread holds."""

from __future__ import annotations

from ..errors import ResourceError
from ..ir.expr import Buffer
from ..ir.kernel import Kernel
from ..target import Target

BARRIER_BYTES = 8
ALIGNMENT = 16


def storage(kernel: Kernel, target: Target) -> Kernel:
    """Every shared and barrier buffer gets a byte offset; more than a block or a thread may have is a ResourceError."""
    _private(kernel, target)
    placed: dict[Buffer, int] = dict(kernel.attrs.get("placed", {}))
    tiles = [b for b in kernel.buffers if b.space == "shared"]
    at = max((placed[b] + _bytes(b) for b in tiles if b in placed), default=0)
    offsets: dict[Buffer, int] = {}
    for buffer in tiles:
        if buffer not in placed:
            at = -(-at // ALIGNMENT) * ALIGNMENT
            placed[buffer] = at
            at += _bytes(buffer)
        offsets[buffer] = placed[buffer]
    at = -(-at // BARRIER_BYTES) * BARRIER_BYTES
    for buffer in kernel.buffers:
        if buffer.space == "barrier":
            offsets[buffer] = at
            at += (buffer.static_size() or 0) * BARRIER_BYTES
    limit = target.arch.max_shared_per_block
    if at > limit:
        parts = ", ".join(f"{b.name} {_bytes(b)} B" for b in tiles if b.attr("view_of") is None)
        raise ResourceError(
            f"the kernel's shared tiles take {at} bytes ({parts})",
            rule=f"a block on {target.name} has at most {limit} bytes of shared memory",
            fix="use smaller tiles or fewer stages (num_stages)",
            loc=max(tiles, key=_bytes).loc or kernel.loc if tiles else kernel.loc,
        )
    attrs = {k: v for k, v in kernel.attrs.items() if k not in ("places", "placed")}
    return kernel.with_(offsets=offsets, shared_bytes=at, attrs=attrs)


def _private(kernel: Kernel, target: Target) -> None:
    """Device compilers work for minutes on a tile that no thread can hold, before they refuse it."""
    limit = target.arch.max_private_per_thread
    buffer = next((b for b in kernel.buffers if b.space in ("reg", "local") and _bytes(b) > limit), None)
    if buffer is not None:
        raise ResourceError(
            f"a thread's share of `{buffer.name}` takes {_bytes(buffer)} bytes",
            rule=f"a thread on {target.name} has at most {limit} bytes of its own",
            fix="use a smaller tile or more threads",
            loc=buffer.loc or kernel.loc,
        )


def _bytes(buffer: Buffer) -> int:
    return (buffer.static_size() or 0) * buffer.dtype.bytes
