"""T.print and T.device_assert, and expression statements of the older script."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer, Expr, Load, Var, as_expr, binary, cast, compare, truth
from ..ir.stmt import ONE, ZERO, Assert, Eval, For, If, Let, Print, Region, Stmt
from ..ops.parallel import Parallel
from .builder import require
from .faults import fault, shown
from .mathfns import scalar
from .regions import to_region
from .warp import linear_thread


def print(obj: Any = None, msg: str = "", warp_group_id: int = 0, warp_id: int = 0) -> None:
    """Prints from the device: an expression from every thread, a tile from one."""
    builder = require("T.print")
    parts: list[Any] = [f"{msg}: "] if msg and obj is not None else [msg] if msg else []
    if isinstance(obj, Buffer | Region) and not (isinstance(obj, Buffer) and obj.space == "var"):
        _dump(to_region(obj, "T.print: the tile"), parts)
        return
    if obj is not None:
        parts.append(obj if isinstance(obj, str) else scalar(obj, "T.print"))
    builder.emit(Print(tuple(parts), loc=builder.here))


def _dump(region: Region, parts: list[Any]) -> None:
    """Prints a tile element by element: a fragment from the threads that hold it, other memory from one thread."""
    builder = require("T.print")
    loc = builder.here
    vars = tuple(Var(builder.unique(name), loc=loc) for name in "ijklmn"[: len(region.extents)])
    place = tuple(binary("add", start, var) for start, var in zip(region.starts, vars, strict=True))
    label: list[Any] = [*parts, f"{region.buffer.name}["]
    for var in place:
        label += [var, ", "]
    label[-1] = "] = "
    body: tuple[Stmt, ...] = (Print((*label, Load(region.buffer, place, loc=loc)), loc=loc),)
    if region.buffer.space == "fragment":
        builder.emit(Parallel(vars, tuple(region.extents), body, loc=loc))
        return
    for var, extent in reversed(list(zip(vars, region.extents, strict=True))):
        body = (For(var, ZERO, as_expr(extent), ONE, body, loc=loc),)
    if region.buffer.space in ("shared", "global"):
        body = (If(first_thread(), body, loc=loc),)
    for statement in body:
        builder.emit(statement)


def first_thread() -> Expr:
    """True in thread 0 of the block."""
    return compare("eq", linear_thread(), 0)


def device_assert(cond: Any, msg: str = "") -> None:
    """Stops the kernel with `msg` when `cond` does not hold."""
    builder = require("T.device_assert")
    builder.emit(Assert(truth(cond), msg, loc=builder.here))


def evaluate(value: Any) -> None:
    """Keeps an expression as a statement."""
    builder = require("T.evaluate")
    if isinstance(value, Expr):
        builder.emit(Eval(value, loc=builder.here))


def let(var: Any, value: Any) -> None:
    """Gives the variable `var` (made by `T.int32()` and its like) its value, to the end of the block around it."""
    builder = require("T.let")
    if not isinstance(var, Var) or var not in builder.unset:
        raise fault(
            f"T.let of {shown(var)}",
            "it gives a variable made by `T.int32()` its one value",
            f"{shown(value)} can be named by `x = ...` too; T.alloc_var makes a variable that changes",
        )
    builder.emit(Let(var, cast(scalar(value, "T.let"), var.dtype), loc=builder.here))
    builder.define(var)
    builder.unset.discard(var)
