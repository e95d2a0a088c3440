"""Differences of index expressions: `(k + 1) * 64 - k * 64` is 64."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Binary, Const, Expr, Var, binary, same
from .builder import current

Terms = list[tuple[Expr, int]]


def difference(a: Any, b: Any) -> Any:
    """`a - b` as an int when all symbols cancel, else as an expression. Lets of index arithmetic are looked through."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    terms: Terms = []
    constant = _collect(a, 1, terms) + _collect(b, -1, terms)
    left = [(t, c) for t, c in terms if c]
    if not left:
        return constant
    if isinstance(b, int | Const) and constant == 0 and len(left) == 1 and left[0][1] == 1:
        return left[0][0]
    return binary("sub", a, b)


def _collect(value: Any, factor: int, terms: Terms) -> int:
    """Adds `factor * value` to the terms; returns its constant part."""
    if isinstance(value, int):
        return factor * value
    if isinstance(value, Const):
        return factor * int(value.value)
    if isinstance(value, Binary):
        if value.op == "add":
            return _collect(value.a, factor, terms) + _collect(value.b, factor, terms)
        if value.op == "sub":
            return _collect(value.a, factor, terms) + _collect(value.b, -factor, terms)
        if value.op == "mul" and isinstance(value.b, Const):
            return _collect(value.a, factor * int(value.b.value), terms)
        if value.op == "mul" and isinstance(value.a, Const):
            return _collect(value.b, factor * int(value.a.value), terms)
    if isinstance(value, Var) and (builder := current()) is not None and value in builder.lets:
        return _collect(builder.lets[value], factor, terms)
    for number, (term, count) in enumerate(terms):
        if same(term, value):
            terms[number] = (term, count + factor)
            return 0
    terms.append((value, factor))
    return 0
