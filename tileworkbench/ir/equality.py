"""Structural equality of expressions."""

from __future__ import annotations

from typing import Any

from .node import Node
from .terms import Const, Expr, Var


def same(a: Any, b: Any) -> bool:
    """Structural equality of two expressions (or Python numbers), ignoring places."""
    if a is b:
        return True
    if not isinstance(a, Expr) or not isinstance(b, Expr):
        x, y = (v.value if isinstance(v, Const) else v for v in (a, b))
        return isinstance(x, (int, float)) and isinstance(y, (int, float)) and x == y
    if type(a) is not type(b) or isinstance(a, Var):
        return False
    if isinstance(a, Const) and isinstance(b, Const):
        return a.dtype is b.dtype and (a.value == b.value or (a.value != a.value and b.value != b.value))
    if a.dtype is not b.dtype:
        return False
    for name in a._fields:
        x, y = getattr(a, name), getattr(b, name)
        if type(x) is tuple:
            if len(x) != len(y) or not all(same(i, j) for i, j in zip(x, y, strict=True)):
                return False
        elif isinstance(x, Expr):
            if not same(x, y):
                return False
        elif isinstance(x, Node):
            if x is not y:
                return False
        elif x != y:
            return False
    return True
