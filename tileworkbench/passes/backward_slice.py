"""What a second role must do to know where its copies go: the scalars, private variables, loops and branches that its
copies' places depend on, as statements of its own."""

from __future__ import annotations

from typing import Any

from ..ir.arith import substitute
from ..ir.effects import accesses
from ..ir.expr import Buffer, Call, Load, Var
from ..ir.kernel import Kernel
from ..ir.node import Node, replace, rewrite, walk
from ..ir.op import Choice, ElementStmt, Op
from ..ir.planned import Acquire, Commit
from ..ir.region import root
from ..ir.stmt import Alloc, Break, Continue, Eval, For, If, Let, Stmt, Store, While
from ..ops.intrinsics import is_effect, is_intrinsic

PRIVATE = ("var", "local")


def is_private_store(s: Stmt) -> bool:
    """A store to a thread's own variable."""
    return isinstance(s, Store) and s.buffer.space in PRIVATE


class Slice:
    """Statements that only the copies need. `body` is what is left; `refusal` says why it cannot be done apart."""

    def __init__(self, body: tuple[Stmt, ...], kernel: Kernel) -> None:
        self.used: set[Var | Buffer] = set()
        self.refusal = ""
        self._written = {root(a.buffer) for a in accesses(kernel.body) if a.writes and a.buffer.space == "global"}
        self._kernel = kernel
        before = -1
        while len(self.used) > before:  # a trip may read what an earlier one stored
            before = len(self.used)
            self.body = self._keep(body)
        if not self.refusal:
            self.refusal = self._only_stores()

    def _need(self, *parts: Any) -> None:
        for part in parts:
            for n in walk(part):
                if isinstance(n, Var):
                    self.used.add(n)
                elif isinstance(n, Load):
                    self._read(n.buffer)
                elif isinstance(n, Call) and (is_intrinsic(n) or is_effect(n)):
                    self.refusal = self.refusal or f"a load depends on T.{n.fn}, which the load role cannot ask"

    def _read(self, b: Buffer) -> None:
        if b.space in PRIVATE:
            self.used.add(b)
        elif b.space != "global":
            self.refusal = self.refusal or f"a load depends on `{b.name}`, which the load role does not have"
        elif root(b) in self._written:
            self.refusal = self.refusal or f"a load depends on `{b.name}`, which the kernel writes"

    def _keep(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for s in reversed(body):
            kept = self._statement(s)
            if kept is not None:
                out.append(kept)
        return tuple(reversed(out))

    def _statement(self, s: Stmt) -> Stmt | None:
        if isinstance(s, Let):
            if s.var not in self.used:
                return None
            self._need(s.value)
        elif isinstance(s, Store):
            if s.buffer not in self.used:
                return None
            self._need(s.value, *s.indices)
        elif isinstance(s, Alloc):
            return s if s.buffer in self.used else None
        elif isinstance(s, (For, While)):
            inner = self._keep(s.body)
            if not inner:
                return None
            self._need(*((s.start, s.stop, s.step) if isinstance(s, For) else (s.cond,)))
            return replace(s, body=inner)
        elif isinstance(s, If):
            then, orelse = self._keep(s.then), self._keep(s.orelse)
            if not then and not orelse:
                return None
            self._need(s.cond)
            return replace(s, then=then, orelse=orelse)
        elif isinstance(s, Eval):
            self._need(s.value)
        elif isinstance(s, Op):
            self._need(*s.src.starts, *s.dst.starts)  # type: ignore[attr-defined]
        elif not isinstance(s, (Acquire, Commit)):
            return None
        return s

    def _only_stores(self) -> str:
        """The variables get their values by plain stores alone, in loops that run to their ends."""
        mine = {b for b in self.used if isinstance(b, Buffer)}
        for s in walk(self._kernel.body):
            inside = tuple(walk(s.body)) if isinstance(s, (For, While)) else ()
            leaves = any(isinstance(n, (Break, Continue)) for n in inside)
            if leaves and any(isinstance(n, Store) and n.buffer in mine for n in inside):
                return "a load depends on a variable of a loop with a run-time end"
            if isinstance(s, (Op, ElementStmt)):
                touched = s.element_access() if isinstance(s, ElementStmt) else s.effects()
                found = next((a.buffer for a in touched if a.writes and a.buffer in mine), None)
                if found is not None:
                    return f"a load depends on `{found.name}`, which an operation writes"
        return ""

    def own(self, choices: dict[Op, Choice]) -> tuple[tuple[Stmt, ...], Kernel]:
        """The statements with variables of their own, and the kernel that knows their ranges; `choices` gets the new
        operations. What is uniform in one role (all its threads read a scalar) is not so in another (one does)."""
        bound = [n.var for n in walk(self.body) if isinstance(n, (Let, For))]
        fresh: dict[Any, Var] = {v: Var(v.name, dtype=v.dtype, loc=v.loc) for v in bound}
        private = {b: replace(b) for b in self.used if isinstance(b, Buffer)}

        def swap(n: Node) -> Node:
            if isinstance(n, Buffer):
                return private.get(n, n)
            buffer = getattr(n, "buffer", None)
            return replace(n, buffer=private[buffer]) if buffer in private else n

        made = tuple(rewrite(substitute(s, fresh), swap) for s in self.body)
        old, new = ([n for n in walk(b) if isinstance(n, Op)] for b in (self.body, made))
        for a, b in zip(old, new, strict=True):
            choices[b] = choices[a]
        ranges = dict(self._kernel.attrs.get("ranges", {}))
        ranges |= {fresh[v]: limits for v, limits in ranges.items() if v in fresh}
        return made, self._kernel.with_(attrs={**self._kernel.attrs, "choices": dict(choices), "ranges": ranges})
