"""Calls that are not functions of their arguments alone: synchronisation, lane exchanges, thread-wide combinations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...ir.expr import Call, Expr
from .state import State

if TYPE_CHECKING:
    from .program import Program

# Statements of one agent run in the user's order for all threads at once, so ordering calls have nothing left to do.
_ORDERING = frozenset(
    ("sync_threads", "sync_warp", "syncthreads", "syncwarp", "sync_grid", "fence_proxy_async", "threadfence", "pdl_trigger",
     "pdl_sync")
)  # fmt: skip


def compile_effect(e: Expr, depth: int, program: Program) -> Callable[[State], None] | None:
    """The effect of a call that stands as a statement; None when `e` is evaluated like any other expression."""
    if isinstance(e, Call) and e.fn in _ORDERING:
        return lambda st: None
    return None


def compile_value(e: Call, depth: int, program: Program) -> Callable[[State], Any] | None:
    """The value of an intrinsic; None when `e` is a math function."""
    return None
