"""Index expressions as sums: terms and factors, differences, coefficients, substitution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .expr import Binary, Const, Expr, Unary, Var, as_expr, binary, cast, const, same
from .node import map_children


def simplify_logic(e: Binary) -> Expr:
    """`and` and `or` with a constant side decided."""
    absorbing = e.op in ("lor", "or")
    for a, b in ((e.a, e.b), (e.b, e.a)):
        if isinstance(a, Const):
            return a if bool(a.value) == absorbing else b
    return e


def linear(e: Expr) -> dict[Expr | None, int]:
    """`e` as a sum: atom → factor, with the constant under None. Atoms that are structurally equal are merged."""
    out: dict[Expr | None, int] = {}
    collect(e, 1, out)
    return {atom: factor for atom, factor in out.items() if factor != 0}


def collect(e: Expr, factor: int, out: dict[Expr | None, int]) -> None:
    """Adds `factor` times the terms of `e` to `out`."""
    if isinstance(e, Const):
        out[None] = out.get(None, 0) + factor * int(e.value)
    elif isinstance(e, Binary) and e.op in ("add", "sub"):
        collect(e.a, factor, out)
        collect(e.b, factor if e.op == "add" else -factor, out)
    elif isinstance(e, Binary) and e.op == "mul" and isinstance(e.b, Const):
        collect(e.a, factor * int(e.b.value), out)
    elif isinstance(e, Binary) and e.op == "mul" and isinstance(e.a, Const):
        collect(e.b, factor * int(e.a.value), out)
    elif isinstance(e, Binary) and e.op == "shl" and isinstance(e.b, Const):
        collect(e.a, factor << int(e.b.value), out)
    elif isinstance(e, Unary) and e.op == "neg":
        collect(e.a, -factor, out)
    else:
        for atom in out:
            if atom is not None and same(atom, e):
                out[atom] += factor
                return
        out[e] = factor


def rebuild(terms: Mapping[Expr | None, int], dtype: Any) -> Expr:
    """The sum as an expression, in the order of its terms, the constant last."""
    total: Expr | None = None
    for atom, factor in terms.items():
        if atom is None or factor == 0:
            continue
        if atom.dtype is not dtype:
            atom = cast(atom, dtype) if atom.dtype.bits <= dtype.bits else atom
        size = abs(factor) if total is not None else factor
        term = atom if size == 1 else Binary("mul", atom, const(size, dtype), dtype=atom.dtype, loc=atom.loc)
        if total is None:
            total = term
        else:
            total = Binary("add" if factor > 0 else "sub", total, term, dtype=term.dtype, loc=total.loc)
    offset = terms.get(None, 0)
    if total is None or offset == 0:
        return const(offset, dtype) if total is None else total
    return Binary("add" if offset > 0 else "sub", total, const(abs(offset), dtype), dtype=total.dtype, loc=total.loc)


def linear_difference(a: Expr, b: Expr) -> Expr:
    """`a - b` with equal terms cancelled."""
    terms = linear(a)
    collect(b, -1, terms)
    return rebuild({k: f for k, f in terms.items() if f}, a.dtype)


def coefficient(e: Expr, var: Var) -> int | None:
    """How much `e` grows with each step of `var`, when that is constant; None otherwise."""
    total = 0
    for atom, factor in linear(e).items():
        if atom is None:
            continue
        if atom is var:
            total += factor
        elif mentions(atom, (var,)):
            return None
    return total


def mentions(e: Any, variables: Iterable[Var]) -> bool:
    """True when one of the variables occurs in `e`."""
    wanted = set(variables)
    stack = [e]
    while stack:
        top = stack.pop()
        if top in wanted:
            return True
        for name in getattr(top, "_fields", ()):
            value = getattr(top, name)
            if isinstance(value, tuple):
                stack.extend(v for v in value if hasattr(v, "_fields"))
            elif hasattr(value, "_fields"):
                stack.append(value)
    return False


def substitute(e: Any, mapping: Mapping[Any, Any]) -> Any:
    """`e` (an expression, statement or tuple of them) with variables replaced; constants fold on the way."""
    if isinstance(e, tuple):
        return tuple(substitute(item, mapping) for item in e)
    if isinstance(e, Var):
        new = mapping.get(e, e)
        return new if isinstance(new, Expr) else as_expr(new, e.dtype)
    if not getattr(e, "_fields", ()):
        return e
    new = map_children(e, lambda c: substitute(c, mapping))
    if new is not e and isinstance(new, Binary):
        return binary(new.op, new.a, new.b) if new.op not in ("land", "lor") else simplify_logic(new)
    return new
