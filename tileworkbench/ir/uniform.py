"""Uniformity: over how many threads an expression surely has one value.

Scopes are ordered; a value uniform over a scope is uniform over every narrower one. `thread` says nothing (each thread
may have its own value), `grid` that all threads of the launch agree. A role is some warps of a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .expr import Binary, Buffer, Call, Compare, Const, Expr, Load, Special, Var
from .instr import Instr, Reg, Vote
from .kernel import Kernel
from .node import Node, children, walk
from .op import ElementStmt, Op
from .stmt import Break, Continue, For, If, Let, Region, Stmt, Store, While
from .threadruns import run_length, thread_steps

SCOPES = ("thread", "warp", "warpgroup", "role", "block", "cluster", "grid")
WARP, WARPGROUP = 32, 128  # threads
_RANK = {scope: rank for rank, scope in enumerate(SCOPES)} | {"lane": 0}

# Where values come from that the hardware gives.
_SPECIALS = {
    "thread": "thread",
    "role_thread": "thread",
    "lane": "thread",
    "warp": "warp",
    "role_warp": "warp",
    "warpgroup": "warpgroup",
    "cluster_rank": "block",
    "block_x": "block",
    "block_y": "block",
    "block_z": "block",
    "block": "block",
    "grid_x": "grid",
    "grid_y": "grid",
    "grid_z": "grid",
    "threads": "grid",
}
# Intrinsics that differ from thread to thread, or warp to warp, whatever they are given.
_CALLS = {
    "shuffle_elect": "thread",
    "activemask": "warp",
    "ballot_sync": "warp",
    "match_any_sync": "warp",
    "match_all_sync": "warp",
    "block_rank_in_cluster": "block",
}


def rank(scope: str) -> int:
    """The place of a scope in the order, thread (lane) first."""
    return _RANK[scope]


def narrower(a: str, b: str) -> str:
    """The narrower of two scopes."""
    return a if _RANK[a] <= _RANK[b] else b


class Uniformity:
    """Scopes of the variables and registers of a kernel: parameters and symbols agree over the grid, block indices over
    the block, thread indices not at all; loop variables and lets take what their bounds and values have.

    A private buffer (var, local, reg) is as uniform as the narrowest of what is stored to it and of the branches and
    loops around those stores; fragments differ between threads; a load from shared or global memory of a uniform place
    is uniform, since no thread may write it meanwhile without a race. `lanes`: threads of a warp."""

    def __init__(self, kernel: Kernel, lanes: int = WARP) -> None:
        self.lanes = lanes
        self.vars: dict[Var, str] = dict.fromkeys((*kernel.scalars, *kernel.symbols()), "grid")
        self.vars |= dict.fromkeys(kernel.block_vars, "block")
        self.vars |= dict.fromkeys(kernel.thread_vars, "thread")
        self.steps = thread_steps(kernel.thread_shape, kernel.thread_vars)
        self.buffers: dict[Buffer, str] = {}
        self._settle(kernel.body)

    def scope(self, e: Any) -> str:
        """The widest scope over which an expression is surely uniform."""
        best = len(SCOPES) - 1
        stack: list[Any] = [e]
        while stack:
            top = stack.pop()
            if isinstance(top, Const) or not isinstance(top, Node):
                continue
            length = run_length(top, self.steps) if isinstance(top, (Compare, Binary)) else 0
            if length and length % self.lanes == 0:
                best = min(best, _RANK["warp" if length % WARPGROUP else "warpgroup"])
            elif isinstance(top, Var):
                best = min(best, _RANK[self.vars.get(top, "grid")])
            elif isinstance(top, Special):
                best = min(best, _RANK[_SPECIALS.get(top.name, "thread")])
            elif isinstance(top, Load):
                best = min(best, _RANK[self._memory(top.buffer)])
                stack.extend(top.indices)
            else:
                if isinstance(top, Call):
                    best = min(best, _RANK[_CALLS.get(top.fn, "grid")])
                stack.extend(children(top))
            if best == 0:
                break
        return SCOPES[best]

    def uniform(self, e: Any, scope: str) -> bool:
        """True when `e` surely has one value over the scope."""
        return _RANK[self.scope(e)] >= _RANK[scope]

    def _memory(self, b: Buffer) -> str:
        if b.space == "fragment":
            return "thread"
        if b.space in ("reg", "local", "var"):
            return self.buffers.get(b, "grid")  # never written: undefined, and reported elsewhere
        return "block" if b.space in ("shared", "barrier") else "grid"

    def _settle(self, body: tuple[Stmt, ...]) -> None:
        """Repeats until nothing gets narrower; each round can only lower a scope, so it ends."""
        changed = True
        while changed:
            before = (dict(self.vars), dict(self.buffers))
            self._visit(body, "grid")
            changed = before != (self.vars, self.buffers)

    def _visit(self, body: tuple[Stmt, ...], around: str) -> None:
        for s in body:
            self._statement(s, around)

    def _statement(self, s: Stmt, around: str) -> None:
        if isinstance(s, Let):
            self._lower(self.vars, s.var, self.scope(s.value))
        elif isinstance(s, For):
            bounds = self._all((s.start, s.stop, s.step))
            self._lower(self.vars, s.var, bounds)
            self._loop(s.body, narrower(around, bounds))
        elif isinstance(s, While):
            self._loop(s.body, narrower(around, self.scope(s.cond)))
        elif isinstance(s, If):
            inner = narrower(around, self.scope(s.cond))
            self._visit(s.then, inner)
            self._visit(s.orelse, inner)
        elif isinstance(s, Store):
            self._lower(self.buffers, s.buffer, narrower(around, self._all((s.value, *s.indices))))
        elif isinstance(s, Instr):
            self._instruction(s, around)
        elif isinstance(s, Op):
            self._operation(s, around)
        elif isinstance(s, ElementStmt):
            for a in s.element_access():  # what an atomic finds differs from thread to thread
                if a.writes and a.buffer.space in ("local", "var", "reg"):
                    self._lower(self.buffers, a.buffer, "thread")
        else:
            for part in children(s):
                if isinstance(part, Stmt):
                    self._statement(part, around)

    def _loop(self, body: tuple[Stmt, ...], around: str) -> None:
        """A loop that some threads leave earlier than others makes what it writes differ."""
        self._visit(body, narrower(around, self.exits(body)))

    def exits(self, body: tuple[Stmt, ...], around: str = "grid") -> str:
        """The narrowest scope of a condition under which this loop body breaks or continues."""
        found = "grid"
        for s in body:
            if isinstance(s, (Break, Continue)):
                found = narrower(found, around)
            elif isinstance(s, If):
                inner = narrower(around, self.scope(s.cond))
                found = narrower(found, self.exits(s.then + s.orelse, inner))
        return found

    def _instruction(self, s: Instr, around: str) -> None:
        body = getattr(s, "body", None)
        if body is not None:  # one lane runs it: the others keep what they had
            self._visit(body, "thread")
            return
        scope = "warp" if isinstance(s, Vote) else self._source(s)
        for key in ("dst", "d", "old"):
            target = getattr(s, key, None)
            if isinstance(target, Reg):
                self._lower(self.buffers, target.buffer, narrower(around, scope))

    def _source(self, s: Instr) -> str:
        """A load of a uniform place is uniform; matrix, shuffle and atomic results differ between lanes."""
        source = getattr(s, "src", None)
        if source is None or s.scope != "lane" or isinstance(source, Reg):
            return "thread"
        pred, fill = getattr(s, "pred", None), getattr(s, "fill", None)
        found = narrower(self._memory(source.buffer), self.scope(source.offset))
        return narrower(found, self._all(e for e in (pred, fill) if e is not None))

    def _operation(self, s: Op, around: str) -> None:
        """A tile operation writes private memory per thread; its loop variables are each thread's own."""
        for v in getattr(s, "vars", ()):
            self._lower(self.vars, v, "thread")
        body = getattr(s, "body", None)
        if body is not None:
            self._visit(body, "thread")
        for n in walk(s):
            if isinstance(n, Region) and n.buffer.space in ("local", "var", "reg"):
                self._lower(self.buffers, n.buffer, "thread")

    def _all(self, parts: Iterable[Expr]) -> str:
        found = "grid"
        for part in parts:
            found = narrower(found, self.scope(part))
        return found

    @staticmethod
    def _lower(known: dict[Any, str], key: Any, scope: str) -> None:
        known[key] = narrower(known.get(key, "grid"), scope)


def scope_of(e: Expr, scopes: Mapping[Var, str]) -> str:
    """The scope of an expression whose variables have the given scopes, without a kernel around it."""
    bare = Uniformity.__new__(Uniformity)
    bare.vars, bare.buffers, bare.steps, bare.lanes = dict(scopes), {}, {}, WARP
    return bare.scope(e)
