"""Offsets of shared storage: the most aligned first, barriers last, and the sum held against the target's limit."""

from __future__ import annotations

from ..errors import ResourceError
from ..ir.expr import Buffer
from ..ir.kernel import Kernel
from ..target import Target

BARRIER_BYTES = 8


def shared_plan(kernel: Kernel, target: Target) -> Kernel:
    """Every shared and barrier buffer gets a byte offset; more than a block may have is a ResourceError."""
    offsets: dict[Buffer, int] = {}
    at = 0
    tiles = [b for b in kernel.buffers if b.space == "shared"]
    for buffer in sorted(tiles, key=lambda b: -b.attr("alignment", 16)):
        alignment = max(16, buffer.attr("alignment", 16))
        at = -(-at // alignment) * alignment
        offsets[buffer] = at
        at += (buffer.static_size() or 0) * buffer.dtype.bytes
    at = -(-at // BARRIER_BYTES) * BARRIER_BYTES
    for buffer in kernel.buffers:
        if buffer.space == "barrier":
            offsets[buffer] = at
            at += (buffer.static_size() or 0) * BARRIER_BYTES
    limit = target.arch.max_shared_per_block
    if at > limit:
        parts = ", ".join(f"{b.name} {(b.static_size() or 0) * b.dtype.bytes} B" for b in tiles)
        raise ResourceError(
            f"the kernel's shared tiles take {at} bytes ({parts})",
            rule=f"a block on {target.name} has at most {limit} bytes of shared memory",
            fix="use smaller tiles or fewer stages (num_stages)",
            loc=kernel.loc,
        )
    return kernel.with_(offsets=offsets, shared_bytes=at)
