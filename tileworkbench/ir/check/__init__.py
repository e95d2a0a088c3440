"""The invariants of each level. A kernel that breaks one is the compiler's fault: InternalError, with the statement."""

from __future__ import annotations

from ...errors import InternalError
from ...target import Target
from ..kernel import Kernel
from ..node import walk
from .planned import check_planned
from .scopes import Scopes
from .thread import check_thread

__all__ = ["check"]

_WARP = 32


def check(kernel: Kernel, level: str | None = None, target: Target | None = None) -> Kernel:
    """The kernel itself when it keeps the invariants of `level` (its own when None); `target` adds the machine's.

    tile: names bound, ranks. planned: also roles, layouts, channels even on every path, issues completed. thread: also
    storage placed, constant register indices, instructions executed by the threads they need, barrier bytes."""
    level = level or kernel.level
    if level not in ("tile", "planned", "thread"):
        raise InternalError(f"there is no level {level!r}", rule="tile, planned, thread", loc=kernel.loc)
    warp_size = target.arch.warp_size if target is not None else _WARP
    nodes = tuple(walk(kernel.body))
    Scopes(kernel, level, nodes).run()
    if level == "planned":
        check_planned(kernel, nodes, warp_size)
    elif level == "thread":
        check_thread(kernel, nodes, target, warp_size)
    return kernel
