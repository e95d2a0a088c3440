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
from ..ir.evaluate import evaluate, is_index_arithmetic
from ..ir.expr import Buffer, Expr, Var
from ..ir.kernel import Kernel
from ..ir.node import Node, map_children, replace, rewrite, walk
from ..ir.op import Op
from ..ir.stmt import Alloc, For, If, Stmt, While
from .intrinsics import block_meeting, named_meeting
from .manual_op import ManualOp
from .warpgroup import WarpGroups

WARPGROUP = 128
Groups = tuple[int, ...]


def with_selections(kernel: Kernel, lanes: int = 32) -> Kernel:
    """Branches on the thread index as selections of warps, and every fragment with its own warps."""
    unit = _unit(kernel, lanes)
    body = tuple(x for s in kernel.body for x in _branches(s, kernel, unit))
    body = _in_order(body, orders_itself(kernel))
    owners = _owners(body)
    if not owners and body == kernel.body:
        return kernel
    body = tuple(_renamed(s, owners) for s in body)
    return kernel.with_(body=_claimed(body, owners, unit))


# --- branches on the thread index -------------------------------------------------------------------------------------
def _unit(kernel: Kernel, lanes: int) -> int:
    """Threads of the smallest piece that the kernel's branches select: whole warpgroups, or single warps."""
    conditions = [
        n.cond for n in walk(kernel.body) if isinstance(n, If) and kernel.thread_vars and _has_ops((*n.then, *n.orelse))
    ]  # fmt: skip
    whole = all(_chosen(c, kernel, WARPGROUP) is not None or _chosen(c, kernel, lanes) is None for c in conditions)
    return WARPGROUP if whole else lanes


def _branches(s: Stmt, kernel: Kernel, unit: int) -> tuple[Stmt, ...]:
    if isinstance(s, WarpGroups) and s.unit != unit:
        each = s.unit // unit
        return (replace(s, groups=tuple(g * each + i for g in s.groups for i in range(each)), unit=unit),)
    if isinstance(s, If) and kernel.thread_vars and _has_ops((*s.then, *s.orelse)):
        chosen = _chosen(s.cond, kernel, unit)
        if chosen is None and _divides_threads(s, kernel):
            raise LanguageError(
                "a tile operation in a branch that only some threads of a warp take",
                rule="the threads of whole warps run a tile operation together",
                fix="branch on multiples of the warp, or write the branch with T.Parallel inside an unconditional copy",
                loc=s.loc,
            )
        if chosen is not None:
            every = tuple(range(-(-kernel.threads // unit)))
            others = tuple(g for g in every if g not in chosen)
            then = tuple(x for c in s.then for x in _branches(c, kernel, unit))
            orelse = tuple(x for c in s.orelse for x in _branches(c, kernel, unit))
            made: list[Stmt] = []
            if then and chosen:
                made.append(WarpGroups(chosen, then, unit, after=True, loc=s.loc))
            if orelse and others:
                nested = all(isinstance(x, WarpGroups) for x in orelse)  # elif: selections of what is left
                made += [_only(x, others) for x in orelse] if nested else [WarpGroups(others, orelse, unit, loc=s.loc)]
            return tuple(made)
    if isinstance(s, (For, While)):
        return (replace(s, body=tuple(x for c in s.body for x in _branches(c, kernel, unit))),)
    if isinstance(s, If):
        then = tuple(x for c in s.then for x in _branches(c, kernel, unit))
        return (replace(s, then=then, orelse=tuple(x for c in s.orelse for x in _branches(c, kernel, unit))),)
    return (s,)


def orders_itself(kernel: Kernel) -> bool:
    """A kernel with barriers of its own: its selections of warps wait for one another there, and nowhere else."""
    statements = [n for n in walk(kernel.body) if isinstance(n, Stmt)]
    barriers = any(isinstance(s, Alloc) and s.buffer.space == "barrier" for s in statements)
    return barriers or any(named_meeting(s) and not block_meeting(s) for s in statements)


def _in_order(body: tuple[Stmt, ...], free: bool) -> tuple[Stmt, ...]:
    """Selections as the text has them: each after the one before it, but for the sides of one branch. `free`: none
    waits for another but where the kernel says so."""
    made: list[Stmt] = []
    beside: set[int] = set()  # pieces of the sides before
    for s in body:
        if isinstance(s, WarpGroups):
            before = made[-1] if made else None
            follows = isinstance(before, WarpGroups)
            side = follows and not s.after and s.loc == before.loc and beside.isdisjoint(s.groups)  # type: ignore[union-attr]
            beside = beside | set(s.groups) if side else set(s.groups)
            s = replace(s, after=follows and not side and not free)
        elif isinstance(s, If):
            s = replace(s, then=_in_order(s.then, free), orelse=_in_order(s.orelse, free))
        elif isinstance(s, (For, While)):
            s = replace(s, body=_in_order(s.body, free))
        made.append(s)
    return tuple(made)


def _only(s: Stmt, among: Groups) -> Stmt:
    """A selection inside the `else` of another one: of the warpgroups that are left."""
    if not isinstance(s, WarpGroups):
        return s
    return replace(s, groups=tuple(g for g in s.groups if g in among), after=False)


def _has_ops(body: tuple[Stmt, ...]) -> bool:
    return any(isinstance(n, Op) for n in walk(body))


def _divides_threads(s: If, kernel: Kernel) -> bool:
    """A condition on the thread index around operations that threads run together."""
    together = any(isinstance(n, Op) and not isinstance(n, (ManualOp, WarpGroups)) for n in walk((*s.then, *s.orelse)))
    return together and not set(kernel.thread_vars).isdisjoint(walk(s.cond))


def _chosen(cond: Expr, kernel: Kernel, unit: int) -> Groups | None:
    """The pieces of `unit` threads for which a condition on the thread index holds; None when it divides one, or asks
    for more."""
    tx = kernel.thread_vars[0]
    if {n for n in walk(cond) if isinstance(n, Var)} != {tx} or not is_index_arithmetic(cond):
        return None
    threads = -(-kernel.threads // unit) * unit
    try:
        holds = np.broadcast_to(np.asarray(evaluate(cond, {tx: np.arange(threads)})), threads)
    except KeyError:
        return None
    by_group = holds.reshape(-1, unit)
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


def _claimed(body: tuple[Stmt, ...], owners: dict[Buffer, dict[Groups, Buffer]], unit: int) -> tuple[Stmt, ...]:
    """Statements outside that touch a selection's fragment become its statements."""
    out: list[Stmt] = []
    given = False  # the statement before became some warps'
    for s in body:
        if isinstance(s, WarpGroups):
            out.append(replace(s, after=True) if given else s)
            given = False
        elif isinstance(s, (For, While, If)) and any(_selections((s,))):
            out.append(_inner(s, owners, unit))
        elif isinstance(s, Alloc):
            out += [Alloc(b, loc=s.loc) for b in owners.get(s.buffer, {(): s.buffer}).values()]
        else:
            made = _given(s, owners, unit)
            given = isinstance(made[-1], WarpGroups)
            out += made
    return tuple(out)


def _inner(s: For | While | If, owners: dict[Buffer, dict[Groups, Buffer]], unit: int) -> Stmt:
    if isinstance(s, If):
        return replace(s, then=_claimed(s.then, owners, unit), orelse=_claimed(s.orelse, owners, unit))
    return replace(s, body=_claimed(s.body, owners, unit))


def _given(s: Stmt, owners: dict[Buffer, dict[Groups, Buffer]], unit: int) -> list[Stmt]:
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
        made.append(WarpGroups(selection, (swapped(s, names) if names else s,), unit, after=not made, loc=s.loc))
    return made
