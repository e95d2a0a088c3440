"""What a schedule that the user wrote asks of a pipelined loop."""

from __future__ import annotations

from ...ir.stmt import For


def fetches_last(loop: For) -> bool:
    """The user's schedule has the copies of a coming trip after the statements that work on this one."""
    order, stage = loop.attr("order"), loop.attr("stage")
    if not order or not stage or min(stage) == max(stage):
        return False
    early = [at for at, s in zip(order, stage, strict=True) if s == min(stage)]
    late = [at for at, s in zip(order, stage, strict=True) if s != min(stage)]
    return bool(min(early) > max(late))
