"""Which warps run what, in kernels that say so themselves: see `ops.selections`, which the tile machine reads too."""

from __future__ import annotations

from ..ir.kernel import Kernel
from ..ops.selections import with_selections
from ..target import Target


def groups(kernel: Kernel, target: Target) -> Kernel:
    """Branches on warpgroups as T.ws, and every fragment with its own warpgroups."""
    return with_selections(kernel, target.arch.warp_size)
