"""Index expressions as the tuples that the launcher evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InternalError
from ..ir.expr import Binary, Cast, Compare, Const, Select, Unary, Var
from .source import Host

_SAME = frozenset({"add", "sub", "mul", "floordiv", "min", "max"})


def host(value: Any, names: Mapping[Var, str]) -> Host:
    """`value` (an int or an expression of symbols and scalars) in the host's operators."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Const):
        return int(value.value)
    if isinstance(value, Var):
        return names.get(value, value.name)
    if isinstance(value, Cast):
        return host(value.a, names)
    if isinstance(value, Compare):
        return (value.op, host(value.a, names), host(value.b, names))
    if isinstance(value, Binary):
        return _binary(value, names)
    if isinstance(value, Unary):
        return _unary(value, names)
    if isinstance(value, Select):
        return _select(value, names)
    text = type(value).__name__
    raise InternalError(f"{text} cannot be computed by the launcher", rule="grids, shapes and facts are of symbols",
                        loc=getattr(value, "loc", None))  # fmt: skip


def _binary(e: Binary, names: Mapping[Var, str]) -> Host:
    a, b = host(e.a, names), host(e.b, names)
    if e.op in _SAME:
        return (e.op, a, b)
    # truncating and floor division agree on sizes; truth values are 0 and 1
    rows: dict[str, Host] = {
        "floormod": ("mod", a, b), "truncdiv": ("floordiv", a, b), "truncmod": ("mod", a, b),
        "land": ("mul", _truth(a), _truth(b)), "lor": ("max", _truth(a), _truth(b)),
    }  # fmt: skip
    if e.op in ("shl", "shr", "and") and isinstance(e.b, Const):
        return _bits(e, a, int(e.b.value))
    if e.op not in rows:
        raise InternalError(
            f"the launcher has no operator {e.op}", rule="grids, shapes and facts are plain arithmetic", loc=e.loc
        )
    return rows[e.op]


def _bits(e: Binary, a: Host, b: int) -> Host:
    if e.op == "and":
        if b & (b + 1):
            raise InternalError(
                f"the launcher has no mask {b:#x}", rule="masks are one less than a power of two", loc=e.loc
            )
        return ("mod", a, b + 1)
    return ("mul" if e.op == "shl" else "floordiv", a, 1 << b)


def _truth(a: Host) -> Host:
    comparison = isinstance(a, tuple) and a[0] in ("eq", "ne", "lt", "le", "gt", "ge")
    return a if comparison else ("ne", a, 0)


def _unary(e: Unary, names: Mapping[Var, str]) -> Host:
    a = host(e.a, names)
    if e.op == "neg":
        return ("sub", 0, a)
    if e.op == "abs":
        return ("max", a, ("sub", 0, a))
    if e.op == "lnot":
        return ("eq", a, 0)
    raise InternalError(f"the launcher has no operator {e.op}", loc=e.loc)


def _select(e: Select, names: Mapping[Var, str]) -> Host:
    """Both sides are numbers, so choosing is arithmetic: b + (a - b)·cond."""
    cond, a, b = _truth(host(e.cond, names)), host(e.a, names), host(e.b, names)
    return ("add", b, ("mul", ("sub", a, b), cond))
