"""How a decorated function is meant: as a factory of kernels, or to be called with tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..language.source import find

LAUNCHES = ("Kernel", "ClusterKernel", "CUDASourceCodeKernel")
TENSORS = ("Tensor", "StridedTensor", "Buffer", "ptr")


def style_of(fn: Callable[..., Any]) -> str:
    """ "lazy" when the function holds a T.prim_func, or neither launches nor says what tensors it takes (a macro may
    launch), else "eager"."""
    node = find(fn).node
    inside = [n for statement in node.body for n in ast.walk(statement)]
    if any(isinstance(n, ast.FunctionDef) and any(_tail(d) == "prim_func" for d in n.decorator_list) for n in inside):
        return "lazy"
    launches = [item.context_expr for n in inside if isinstance(n, ast.With) for item in n.items]
    if any(_tail(call) in LAUNCHES for call in launches):
        return "eager"
    types = [a.annotation for a in (*node.args.args, *node.args.kwonlyargs) if a.annotation is not None]
    types += [n.annotation for n in inside if isinstance(n, ast.AnnAssign) and n.value is None]
    return "eager" if any(_tail(t) in TENSORS for t in types) else "lazy"


def _tail(node: ast.expr) -> str:
    """The last name of `a.b.c(...)`."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
