"""Kernels whose blocks meet (T.sync_grid): all of them run at the same time, and all come to the meeting."""

from __future__ import annotations

from ..errors import LanguageError
from ..ir.kernel import Kernel
from ..ir.node import walk
from ..ir.op import Op
from ..ir.stmt import For, If, Stmt, While
from ..ir.uniform import Uniformity
from ..ops.intrinsics import grid_meeting
from ..target import Target


def meets(kernel: Kernel) -> bool:
    """Whether the kernel's blocks meet."""
    return any(grid_meeting(n) for n in walk(kernel.body))


def check_meetings(kernel: Kernel, target: Target) -> None:
    """LanguageError for a meeting that some blocks may not come to, or as often as others: they would wait forever."""
    if meets(kernel):
        _visit(kernel.body, Uniformity(kernel, target.arch.warp_size))


def _visit(body: tuple[Stmt, ...], uniform: Uniformity) -> None:
    for s in body:
        inside = [n for n in walk(s) if grid_meeting(n)]
        if not inside or grid_meeting(s):
            continue
        asked = (s.start, s.stop, s.step) if isinstance(s, For) else (s.cond,) if isinstance(s, (If, While)) else ()
        leaves = uniform.exits(s.body) if isinstance(s, (For, While)) else "grid"
        if isinstance(s, Op) or leaves != "grid" or not all(uniform.uniform(e, "grid") for e in asked):
            raise LanguageError(
                "T.sync_grid where only some blocks come",
                rule="all blocks of the grid reach it together",
                fix="move it out of the branch or loop that differs between blocks",
                loc=inside[0].loc,
            )
        for part in ("body", "then", "orelse"):
            _visit(getattr(s, part, ()), uniform)
