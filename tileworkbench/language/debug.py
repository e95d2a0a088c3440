"""T.print and T.device_assert, and expression statements of the older script."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer, Expr, as_expr, truth
from ..ir.stmt import Assert, Eval, Print, Region
from .builder import require


def print(obj: Any = None, msg: str = "", warp_group_id: int = 0, warp_id: int = 0) -> None:
    """Prints from the device: an expression from every thread, a tile from one."""
    builder = require("T.print")
    parts: list[Any] = [f"{msg}: "] if msg and obj is not None else [msg] if msg else []
    if isinstance(obj, Buffer | Region | Expr | str):
        parts.append(obj)
    elif obj is not None:
        parts.append(as_expr(obj))
    builder.emit(Print(tuple(parts), loc=builder.here))


def device_assert(cond: Any, msg: str = "") -> None:
    """Stops the kernel with `msg` when `cond` does not hold."""
    builder = require("T.device_assert")
    builder.emit(Assert(truth(cond), msg, loc=builder.here))


def evaluate(expr: Any) -> None:
    """Keeps an expression as a statement."""
    builder = require("T.evaluate")
    if isinstance(expr, Expr):
        builder.emit(Eval(expr, loc=builder.here))
