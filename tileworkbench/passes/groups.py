"""Which warpgroups run what, in kernels that say so themselves (`with T.ws(...)`, or a branch on the thread index
around tile operations).

A fragment lies in the registers of the warpgroups that use it. Used by one selection of warpgroups, statements outside
that touch it are theirs too; used by several, each has its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import LanguageError
from ..ir.effects import accesses
from ..ir.evaluate import evaluate
from ..ir.expr import Buffer, Expr, Var
from ..ir.kernel import Kernel
from ..ir.node import Node, map_children, replace, rewrite, walk
from ..ir.op import Op
from ..ir.stmt import Alloc, For, If, Stmt, While
from ..ops.warpgroup import WarpGroups
from ..target import Target

WARPGROUP = 128
Groups = tuple[int, ...]


def groups(kernel: Kernel, target: Target) -> Kernel:
    """Branches on warpgroups as T.ws, and every fragment with its own warpgroups."""
    body = tuple(x for s in kernel.body for x in _branches(s, kernel))
    owners = _owners(body)
    if not owners and body == kernel.body:
        return kernel
    body = tuple(_renamed(s, owners) for s in body)
    return kernel.with_(body=_claimed(body, owners))


# --- branches on the thread index -------------------------------------------------------------------------------------
def _branches(s: Stmt, kernel: Kernel) -> tuple[Stmt, ...]:
    if isinstance(s, If) and kernel.thread_vars and _has_ops((*s.then, *s.orelse)):
        chosen = _chosen(s.cond, kernel)
        if chosen is not None:
            every = tuple(range(-(-kernel.threads // WARPGROUP)))
            others = tuple(g for g in every if g not in chosen)
            then = tuple(x for c in s.then for x in _branches(c, kernel))
            orelse = tuple(x for c in s.orelse for x in _branches(c, kernel))
            made: list[Stmt] = []
            if then and chosen:
                made.append(WarpGroups(chosen, then, loc=s.loc))
            if orelse and others:
                nested = all(isinstance(x, WarpGroups) for x in orelse)  # elif: selections of what is left
                made += [_only(x, others) for x in orelse] if nested else [WarpGroups(others, orelse, loc=s.loc)]
            return tuple(made)
    if isinstance(s, (For, While)):
        return (replace(s, body=tuple(x for c in s.body for x in _branches(c, kernel))),)
    if isinstance(s, If):
        then = tuple(x for c in s.then for x in _branches(c, kernel))
        return (replace(s, then=then, orelse=tuple(x for c in s.orelse for x in _branches(c, kernel))),)
    return (s,)


def _only(s: Stmt, among: Groups) -> Stmt:
    """A selection inside the `else` of another one: of the warpgroups that are left."""
    return replace(s, groups=tuple(g for g in s.groups if g in among)) if isinstance(s, WarpGroups) else s


def _has_ops(body: tuple[Stmt, ...]) -> bool:
    return any(isinstance(n, Op) for n in walk(body))


def _chosen(cond: Expr, kernel: Kernel) -> Groups | None:
    """The warpgroups for which a condition on the thread index holds; None when it divides one, or asks for more."""
    tx = kernel.thread_vars[0]
    if {n for n in walk(cond) if isinstance(n, Var)} != {tx}:
        return None
    threads = -(-kernel.threads // WARPGROUP) * WARPGROUP
    try:
        holds = np.broadcast_to(np.asarray(evaluate(cond, {tx: np.arange(threads)})), threads)
    except KeyError:
        return None
    by_group = holds.reshape(-1, WARPGROUP)
    if not (by_group == by_group[:, :1]).all():
        return None
    return tuple(int(g) for g in np.flatnonzero(by_group[:, 0]))


# --- fragments and their warpgroups -----------------------------------------------------------------------------------
def _selections(body: tuple[Stmt, ...]) -> Iterator[WarpGroups]:
    return (n for n in walk(body) if isinstance(n, WarpGroups))


def _owners(body: tuple[Stmt, ...]) -> dict[Buffer, dict[Groups, Buffer]]:
    """Fragment → warpgroups that use it → the fragment that is theirs."""
    found: dict[Buffer, dict[Groups, Buffer]] = {}
    for selection in _selections(body):
        for a in accesses(selection.body):
            if a.buffer.space == "fragment":
                mine = found.setdefault(a.buffer, {})
                if selection.groups not in mine:
                    n = len(mine)
                    b = a.buffer
                    mine[selection.groups] = (
                        b if not n else replace(b, name=f"{b.name}_{'_'.join(map(str, selection.groups))}")
                    )
    return found


def _renamed(s: Stmt, owners: dict[Buffer, dict[Groups, Buffer]]) -> Stmt:
    """Every selection of warpgroups with its own fragments."""
    if isinstance(s, WarpGroups):
        names = {b: mine[s.groups] for b, mine in owners.items() if mine.get(s.groups, b) is not b}
        return replace(s, body=tuple(swapped(x, names) for x in s.body)) if names else s
    return map_children(s, lambda c: _renamed(c, owners) if isinstance(c, Stmt) else c)


def swapped(s: Stmt, names: dict[Buffer, Buffer]) -> Stmt:
    """The statement with other buffers."""

    def change(n: Node) -> Node:
        if isinstance(n, Buffer):
            return names.get(n, n)
        held = getattr(n, "buffer", None)
        return replace(n, buffer=names[held]) if isinstance(held, Buffer) and held in names else n

    return rewrite(s, change)  # type: ignore[no-any-return]


def _claimed(body: tuple[Stmt, ...], owners: dict[Buffer, dict[Groups, Buffer]]) -> tuple[Stmt, ...]:
    """Statements outside that touch a selection's fragment become its statements."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, WarpGroups):
            out.append(s)
        elif isinstance(s, (For, While, If)) and any(_selections((s,))):
            out.append(_inner(s, owners))
        elif isinstance(s, Alloc):
            out += [Alloc(b, loc=s.loc) for b in owners.get(s.buffer, {(): s.buffer}).values()]
        else:
            out += _given(s, owners)
    return tuple(out)


def _inner(s: For | While | If, owners: dict[Buffer, dict[Groups, Buffer]]) -> Stmt:
    if isinstance(s, If):
        return replace(s, then=_claimed(s.then, owners), orelse=_claimed(s.orelse, owners))
    return replace(s, body=_claimed(s.body, owners))


def _given(s: Stmt, owners: dict[Buffer, dict[Groups, Buffer]]) -> list[Stmt]:
    """The statement for every selection whose fragments it touches."""
    touched = [a.buffer for a in accesses(s) if a.buffer in owners]
    if not touched:
        return [s]
    selections = {g for b in touched for g in owners[b]}
    writes_others = any(a.writes and a.buffer.space in ("shared", "global") for a in accesses(s))
    if len(selections) > 1 and (writes_others or any(set(owners[b]) != selections for b in touched)):
        shown = ", ".join(f"`{b.name}`" for b in dict.fromkeys(touched))
        raise LanguageError(
            f"{shown} belong to different warpgroups",
            rule="a fragment lies in the registers of the warpgroups that use it in T.ws",
            fix="write the statement inside T.ws, or pass the values through a shared tile",
            loc=s.loc,
        )
    made: list[Stmt] = []
    for selection in sorted(selections):
        names = {b: owners[b][selection] for b in touched if owners[b][selection] is not b}
        made.append(WarpGroups(selection, (swapped(s, names) if names else s,), loc=s.loc))
    return made
