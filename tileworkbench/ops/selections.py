"""Which warpgroups run what, in kernels that say so themselves (`with T.ws(...)`, or a branch on the thread index
around tile operations).

A fragment lies in the registers of the warpgroups that use it. Used by one selection of warpgroups, statements outside
that touch it are theirs too, and so are the other fragments of those statements; used by several, each has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from ..errors import LanguageError
from ..ir.effects import accesses
from ..ir.expr import Buffer
from ..ir.kernel import Kernel
from ..ir.node import Node, map_children, replace, rewrite, walk
from ..ir.stmt import Alloc, For, If, Stmt, While
from .branches import selected
from .warpgroup import Groups, WarpGroups

Owners = dict[Buffer, dict[Groups, Buffer]]


def with_selections(kernel: Kernel, lanes: int = 32) -> Kernel:
    """Branches on the thread index as selections of warps, and every fragment with its own warps."""
    numbers = count()
    body, unit = selected(kernel, lanes, numbers)
    owners = _owners(body)
    _spread(owners, body)
    if not owners and body == kernel.body:
        return kernel
    body = tuple(_renamed(s, owners) for s in body)
    return kernel.with_(body=_Claims(owners, unit, numbers).body(body))


def _selections(body: tuple[Stmt, ...]) -> Iterator[WarpGroups]:
    return (n for n in walk(body) if isinstance(n, WarpGroups))


def _owners(body: tuple[Stmt, ...]) -> Owners:
    """Fragment → warpgroups that use it → the fragment that is theirs."""
    found: Owners = {}
    for selection in _selections(body):
        for a in accesses(selection.body):
            if a.buffer.space == "fragment":
                _own(found, a.buffer, selection.groups)
    return found


def _own(owners: Owners, b: Buffer, groups: Groups) -> None:
    """A fragment of these warpgroups' own."""
    mine = owners.setdefault(b, {})
    if groups not in mine:
        mine[groups] = b if not mine else replace(b, name=f"{b.name}_{'_'.join(map(str, groups))}")


def _spread(owners: Owners, body: tuple[Stmt, ...]) -> None:
    """Statements outside selections that touch their fragments belong to them, with every fragment that they touch."""
    together = [dict.fromkeys(a.buffer for a in accesses(s) if a.buffer.space == "fragment") for s in _outside(body)]
    grew = True
    while grew:
        grew = False
        for touched in together:
            selections = {g for b in touched for g in owners.get(b, ())}
            for b in touched:
                if selections and b not in owners:
                    grew = True
                    for groups in sorted(selections):
                        _own(owners, b, groups)


def _outside(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements that are given to selections as a whole, or to none."""
    for s in body:
        if isinstance(s, (For, While, If)) and any(_selections((s,))):
            for inner in (s.then, s.orelse) if isinstance(s, If) else (s.body,):
                yield from _outside(inner)
        elif not isinstance(s, (WarpGroups, Alloc)):
            yield s


def _renamed(s: Stmt, owners: Owners) -> Stmt:
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


class _Claims:
    """Makes statements outside that touch a selection's fragment its statements."""

    def __init__(self, owners: Owners, unit: int, numbers: Iterator[int]) -> None:
        self.owners, self.unit, self.numbers = owners, unit, numbers

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        given = False  # the statement before became some warps'
        for s in body:
            if isinstance(s, WarpGroups):
                out.append(replace(s, after=True) if given else s)
                given = False
            elif isinstance(s, (For, While, If)) and any(_selections((s,))):
                out.append(self._inner(s))
            elif isinstance(s, Alloc):
                out += [Alloc(b, loc=s.loc) for b in self.owners.get(s.buffer, {(): s.buffer}).values()]
            else:
                made = self._given(s)
                given = isinstance(made[-1], WarpGroups)
                out += made
        return tuple(out)

    def _inner(self, s: For | While | If) -> Stmt:
        if isinstance(s, If):
            return replace(s, then=self.body(s.then), orelse=self.body(s.orelse))
        return replace(s, body=self.body(s.body))

    def _given(self, s: Stmt) -> list[Stmt]:
        """The statement for every selection whose fragments it touches."""
        touched = [a.buffer for a in accesses(s) if a.buffer in self.owners]
        if not touched:
            return [s]
        selections = {g for b in touched for g in self.owners[b]}
        writes_others = any(a.writes and a.buffer.space in ("shared", "global") for a in accesses(s))
        if len(selections) > 1 and (writes_others or any(set(self.owners[b]) != selections for b in touched)):
            shown = ", ".join(f"`{b.name}`" for b in dict.fromkeys(touched))
            raise LanguageError(
                f"{shown} belong to different warpgroups",
                rule="a fragment lies in the registers of the warpgroups that use it in T.ws",
                fix="write the statement inside T.ws, or pass the values through a shared tile",
                loc=s.loc,
            )
        made: list[Stmt] = []
        number = next(self.numbers)
        for at, selection in enumerate(sorted(selections)):
            names = {b: mine for b in touched if (mine := self.owners[b][selection]) is not b}
            body, sides = (swapped(s, names) if names else s,), ((number, at),)
            made.append(WarpGroups(selection, body, self.unit, after=not made, sides=sides, loc=s.loc))
        return made
