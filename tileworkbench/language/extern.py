"""T.call_extern: device functions whose source the kernel brings with it (T.import_source, or T.Kernel's prelude)."""

from __future__ import annotations

import re
from typing import Any

from ..ir.expr import Buffer, Expr, Load, as_expr
from ..ir.node import Node, map_items, replace, rewrite, walk
from ..ir.stmt import ZERO, Alloc, Region, Stmt
from ..ops.extern import ExternCall
from .builder import require
from .dtypes import as_dtype
from .faults import fault, shown
from .pointers import Pointer

_VOID = ("void", "handle", "")


def call_extern(*given: Any, dtype: Any = None) -> Expr | None:
    """Calls a device function by name: `T.call_extern(dtype, name, *args)` or `T.call_extern(name, *args, dtype=…)`.
    Its value is of `dtype`, nothing for "void" and "handle"; a value that nobody reads is not asked for. Arguments are
    numbers, expressions, T.access_ptr(...), buffers (their first element) and slices."""
    builder = require("T.call_extern")
    if len(given) < (1 if dtype is not None else 2):
        raise fault("T.call_extern without a function", "it takes a dtype and a name", 'T.call_extern("void", "f", x)')
    dtype, func_name, *args = given if dtype is None else (dtype, *given)
    if not isinstance(func_name, str) or not re.fullmatch(r"[A-Za-z_][\w:<>, ]*", func_name):
        raise fault(
            f"T.call_extern of {shown(func_name)}", "the function is given by name", 'T.call_extern("void", "f", x)'
        )
    loc = builder.here
    passed = [_argument(a) for a in args]
    result = None
    if dtype is not None and str(dtype) not in _VOID:
        result = Buffer(builder.unique("result"), (1,), as_dtype(dtype), "var", loc=loc)
        builder.emit(Alloc(result, loc=loc))
        builder.define(result)
    builder.emit(ExternCall(func_name, tuple(a for a, _ in passed), tuple(m for _, m in passed), result, loc=loc))
    return Load(result, (ZERO,), loc=loc) if result is not None else None


call_pure_extern = call_extern


def without_unread(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Calls whose value nobody reads stand for themselves: their function may be one without a value."""
    read = {n.buffer for n in walk(body) if isinstance(n, Load)}
    unread = {n.result for n in walk(body) if isinstance(n, ExternCall) and n.result is not None} - read

    def change(n: Node) -> Node | None:
        if isinstance(n, ExternCall) and n.result in unread:
            return replace(n, result=None)
        return None if isinstance(n, Alloc) and n.buffer in unread else n

    return map_items(body, lambda s: rewrite(s, change)) if unread else body


def _argument(value: Any) -> tuple[Expr | Region, str]:
    if isinstance(value, Pointer):
        return Region(value.buffer, value.indices, tuple(1 for _ in value.indices)), value.access
    if isinstance(value, Region):
        return value, "rw"
    if isinstance(value, Buffer):
        if value.space == "var":
            return Load(value, (ZERO,)), ""
        return Region(value, tuple(ZERO for _ in value.shape), tuple(value.shape)), "rw"
    if isinstance(value, str):
        rule = "arguments are values and pointers"
        raise fault(f"T.call_extern with the text {shown(value)}", rule, "put it into the source")
    return as_expr(value), ""
