"""Branches on the thread index around tile operations, as selections of warps in the order that the text has them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import LanguageError
from ..ir.evaluate import evaluate, is_index_arithmetic
from ..ir.expr import Expr, Var
from ..ir.kernel import Kernel
from ..ir.node import replace, walk
from ..ir.op import Op
from ..ir.stmt import Alloc, For, If, Stmt, While
from ..ir.uniform import WARPGROUP
from .intrinsics import block_meeting, named_meeting
from .manual_op import ManualOp
from .warpgroup import Groups, WarpGroups


def selected(kernel: Kernel, lanes: int, numbers: Iterator[int]) -> tuple[tuple[Stmt, ...], int]:
    """(the body with selections for its branches, threads of the piece that they count in). Every branch met gets its
    own of `numbers`: two that are written by the same text are two."""
    branches = _Branches(kernel, _unit(kernel, lanes), numbers)
    return in_order(branches.body(kernel.body), orders_itself(kernel)), branches.unit


def orders_itself(kernel: Kernel) -> bool:
    """A kernel with barriers of its own: its selections of warps wait for one another there, and nowhere else."""
    statements = [n for n in walk(kernel.body) if isinstance(n, Stmt)]
    barriers = any(isinstance(s, Alloc) and s.buffer.space == "barrier" for s in statements)
    return barriers or any(named_meeting(s) and not block_meeting(s) for s in statements)


def in_order(body: tuple[Stmt, ...], free: bool) -> tuple[Stmt, ...]:
    """Selections as the text has them: each after those before it, but for the sides of one branch. `free`: none waits
    for another but where the kernel says so."""
    made: list[Stmt] = []
    beside: list[WarpGroups] = []  # selections before that nothing has waited for
    for s in body:
        if isinstance(s, WarpGroups):
            follows = bool(beside) and not all(_sides_of_one(s, other) for other in beside)
            s = replace(s, after=s.after or (follows and not free))
            beside = [s] if follows else [*beside, s]
        else:
            beside = []
            if isinstance(s, If):
                s = replace(s, then=in_order(s.then, free), orelse=in_order(s.orelse, free))
            elif isinstance(s, (For, While)):
                s = replace(s, body=in_order(s.body, free))
        made.append(s)
    return tuple(made)


def _sides_of_one(a: WarpGroups, b: WarpGroups) -> bool:
    """Whether no thread comes to both: the innermost branch that holds them has them on different sides."""
    parting = next((pair for pair in zip(a.sides, b.sides, strict=False) if pair[0] != pair[1]), None)
    return parting is not None and parting[0][0] == parting[1][0]


def _unit(kernel: Kernel, lanes: int) -> int:
    """Threads of the smallest piece that the kernel's branches select: whole warpgroups, or single warps."""
    conditions = [
        n.cond for n in walk(kernel.body) if isinstance(n, If) and kernel.thread_vars and _has_ops((*n.then, *n.orelse))
    ]  # fmt: skip
    whole = all(_chosen(c, kernel, WARPGROUP) is not None or _chosen(c, kernel, lanes) is None for c in conditions)
    return WARPGROUP if whole else lanes


class _Branches:
    """Replaces branches on the thread index; `unit`: threads of the pieces they select."""

    def __init__(self, kernel: Kernel, unit: int, numbers: Iterator[int]) -> None:
        self.kernel, self.unit, self.numbers = kernel, unit, numbers

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(x for s in body for x in self._statement(s))

    def _statement(self, s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, WarpGroups) and s.unit != self.unit:
            each = s.unit // self.unit
            return (replace(s, groups=tuple(g * each + i for g in s.groups for i in range(each)), unit=self.unit),)
        if isinstance(s, If) and self.kernel.thread_vars and _has_ops((*s.then, *s.orelse)):
            chosen = _chosen(s.cond, self.kernel, self.unit)
            if chosen is not None:
                return self._sides(s, chosen)
            if _divides_threads(s, self.kernel):
                raise LanguageError(
                    "a tile operation in a branch that only some threads of a warp take",
                    rule="the threads of whole warps run a tile operation together",
                    fix="branch on multiples of the warp, or write the branch with T.Parallel inside an unconditional "
                    "copy",
                    loc=s.loc,
                )
        if isinstance(s, (For, While)):
            return (replace(s, body=self.body(s.body)),)
        if isinstance(s, If):
            return (replace(s, then=self.body(s.then), orelse=self.body(s.orelse)),)
        return (s,)

    def _sides(self, s: If, chosen: Groups) -> tuple[Stmt, ...]:
        """A selection for each side that has statements and threads; those of an `elif` are of the threads left."""
        number = next(self.numbers)
        others = tuple(g for g in range(-(-self.kernel.threads // self.unit)) if g not in chosen)
        then, orelse = self.body(s.then), self.body(s.orelse)
        made = [WarpGroups(chosen, then, self.unit, sides=((number, 0),), loc=s.loc)] if then else []
        if all(isinstance(x, WarpGroups) for x in orelse):
            made += [_left(x, others, (number, 1)) for x in orelse]  # type: ignore[arg-type]
        else:
            made.append(WarpGroups(others, orelse, self.unit, sides=((number, 1),), loc=s.loc))
        return tuple(x for x in made if x.groups)


def _left(s: WarpGroups, among: Groups, side: tuple[int, int]) -> WarpGroups:
    """A selection inside the `else` of a branch: of the pieces that are left."""
    return replace(s, groups=tuple(g for g in s.groups if g in among), sides=(side, *s.sides))


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
