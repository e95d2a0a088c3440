"""Control flow under a lane mask: bodies, branches, elections, loops and roles.

A compiled statement is (kind, function). PLAIN functions touch only the warp's own registers; a POINT is preceded by a
place where the scheduler may switch warps; a FLOW is a generator (control flow around points, or a row that can block).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.instr import Elect
from ...ir.planned import Role
from ...ir.stmt import If, Stmt
from .faults import fault
from .memory import check_defined, truth
from .warp import Warp

if TYPE_CHECKING:
    from .program import Program

PLAIN, POINT, FLOW = 0, 1, 2
Code = tuple[int, Callable[[Warp], Any]]


def located(s: Stmt, inner: Callable[[Warp], Iterator[Any]]) -> Callable[[Warp], Iterator[Any]]:
    """A generator row that knows where it stands."""

    def run(w: Warp) -> Iterator[Any]:
        w.at = s
        return inner(w)

    return run


def plain_body(fns: list[Callable[[Warp], Any]], leaves: bool) -> Callable[[Warp], None]:
    """Statements without switching points, in order; the rest is skipped once no lane is left."""

    def run(w: Warp) -> None:
        for fn in fns:
            fn(w)
            if leaves and not w.any:
                return

    return run


def flow_body(items: list[Code], leaves: bool) -> Callable[[Warp], Iterator[Any]]:
    """Statements in order as one generator; None is yielded where the scheduler may switch warps."""

    def run(w: Warp) -> Iterator[Any]:
        for kind, fn in items:
            if kind == PLAIN:
                fn(w)
            elif kind == POINT:
                yield None
                fn(w)
            else:
                yield from fn(w)
            if leaves and not w.any:
                return

    return run


def enter(code: Code, w: Warp) -> Iterator[Any]:
    """Runs a body from a generator, whatever its kind."""
    kind, fn = code
    if kind == FLOW:
        yield from fn(w)
    else:
        fn(w)


# --- branches ---------------------------------------------------------------------------------------------------------
def branch(p: Program, s: If) -> Code:
    """If: both sides run one after the other under their masks; a uniform condition runs one side."""
    cond = p.scope.value(s.cond)
    then, other = p.body(s.then), p.body(s.orelse)

    def split(w: Warp) -> Any:
        w.at = s
        check_defined(w, cond.undefined, "the condition of a branch")
        return truth(cond.read(w))

    if then[0] == PLAIN and other[0] == PLAIN:

        def plain(w: Warp) -> None:
            for code in _sides(w, split(w), then, other):
                code[1](w)

        return PLAIN, plain

    def flow(w: Warp) -> Iterator[Any]:
        for code in _sides(w, split(w), then, other):
            yield from enter(code, w)

    return FLOW, flow


def _sides(w: Warp, taken: Any, then: Code, other: Code) -> Iterator[Code]:
    """The sides to run, with the mask set for each; lanes that left the loop meanwhile stay off."""
    if not isinstance(taken, np.ndarray):
        yield then if taken else other
        return
    saved = w.mask
    for code, mask in ((then, saved & taken), (other, saved & ~taken)):
        if mask.any():
            w.set_mask(mask)
            yield code
    w.set_mask(saved if w.dead is None else saved & ~w.dead)


def elect(p: Program, s: Elect) -> Code:
    """Elect: the lowest lane of each warp (who = warp), of the role's or of the block's first warp."""
    code = p.body(s.body)

    def flow(w: Warp) -> Iterator[Any]:
        w.at = s
        first = {"warp": w.index, "role": w.role_first, "block": 0}[s.who]
        if w.index != first:
            return
        if not w.full:
            raise fault(
                w,
                "divergent",
                "the warp elects a lane while some of its lanes are elsewhere",
                rule="all lanes of a warp take part in an election",
            )
        saved = w.mask
        mask = np.zeros(w.lanes, dtype=bool)
        mask[w.leader()] = True
        w.set_mask(mask)
        yield from enter(code, w)
        w.set_mask(saved if w.dead is None else saved & ~w.dead)

    return FLOW, flow


# --- roles ------------------------------------------------------------------------------------------------------------
def role(p: Program, s: Role) -> Code:
    """Role: the warps of its range run the body, the others pass it."""
    code = p.body(s.body)

    def flow(w: Warp) -> Iterator[Any]:
        if not s.first_warp <= w.index < s.first_warp + s.warps:
            return
        before = (w.role, w.role_first, w.role_threads, w.role_size)
        w.role, w.role_first, w.role_size = s.name, s.first_warp, s.warps * w.lanes
        w.role_threads = w.threads - np.int32(s.first_warp * w.lanes)
        yield from enter(code, w)
        w.role, w.role_first, w.role_threads, w.role_size = before

    return FLOW, flow
