"""A thread kernel compiled for the machine: control flow and instructions as closures over a warp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import InternalError
from ...ir.expr import Buffer
from ...ir.instr import Elect, Reg, StoreMem, Wgmma
from ...ir.kernel import Kernel
from ...ir.node import walk
from ...ir.planned import Role
from ...ir.stmt import Alloc, Assert, Break, Continue, Eval, For, If, Let, Print, Stmt, Store, While
from . import flow, loops, statements
from .expressions import MAKERS
from .flow import FLOW, PLAIN, Code, flow_body, located, plain_body
from .memory import shared_layout
from .values import Scope
from .warp import Warp

Maker = Callable[["Program", Any], Callable[[Warp], Any]]


def wgmma_buffers(kernel: Kernel) -> frozenset[Buffer]:
    """Register buffers that a wgmma names: their registers are watched while it is in flight."""
    found: set[Buffer] = set()
    for n in walk(kernel.body):
        if isinstance(n, Wgmma):
            found.update(r.buffer for r in (n.d, n.a, n.e) if isinstance(r, Reg))
    return frozenset(found)


def stores_elsewhere(kernel: Kernel) -> bool:
    """Whether blocks of a cluster store to one another's shared memory."""
    return any(isinstance(n, StoreMem) and n.block is not None for n in walk(kernel.body))


class Program:
    """`rows` maps an instruction class to (kind, maker). `statements` numbers what touches memory, for race reports."""

    def __init__(self, kernel: Kernel, lanes: int, rows: dict[type, tuple[int, Maker]]) -> None:
        self.kernel, self.lanes, self.rows = kernel, lanes, rows
        self.layout = shared_layout(kernel)
        self.stores_elsewhere = stores_elsewhere(kernel)
        self.scope = Scope(lanes, wgmma_buffers(kernel), MAKERS)
        for var in kernel.block_vars:  # places before any code: some of it is made when it first runs
            self.scope.slot(var)
        self.statements: list[Stmt] = []
        self.maps = {m.name: m for m in kernel.maps}
        for n in walk(kernel.body):
            if isinstance(n, (Let, For)):  # which variables may be undefined must be known before their uses
                self._note_undefined(n)
        self.code = self.body(kernel.body)

    def _note_undefined(self, n: Any) -> None:
        if isinstance(n, Let) and self.scope.value(n.value).undefined is not None:
            self.scope.maybe_undefined.add(n.var)

    def number(self, s: Stmt) -> int:
        """The statement's number in race records."""
        self.statements.append(s)
        return len(self.statements) - 1

    # --- bodies -----------------------------------------------------------------------------------------------------
    def body(self, stmts: tuple[Stmt, ...]) -> Code:
        """One function that runs the statements in order."""
        items = [self.statement(s) for s in stmts]
        leaves = any(isinstance(n, (Break, Continue)) for s in stmts for n in walk(s))
        if all(kind == PLAIN for kind, _ in items):
            return PLAIN, plain_body([fn for _, fn in items], leaves)
        return FLOW, flow_body(items, leaves)

    def statement(self, s: Stmt) -> Code:
        maker = _STATEMENTS.get(type(s))
        if maker is not None:
            return maker(self, s)
        if type(s) not in self.rows:
            raise InternalError(f"the thread machine has no row for {type(s).__name__}", loc=s.loc)
        kind, make = self.rows[type(s)]
        inner = make(self, s)
        if kind == FLOW:
            return FLOW, located(s, inner)

        def run(w: Warp) -> None:
            w.at = s
            inner(w)

        return kind, run


_STATEMENTS: dict[type, Callable[[Program, Any], Code]] = {
    For: loops.for_loop,
    While: loops.while_loop,
    Break: loops.break_loop,
    Continue: loops.continue_loop,
    If: flow.branch,
    Elect: flow.elect,
    Role: flow.role,
    Let: statements.let,
    Store: statements.store,
    Alloc: statements.alloc,
    Eval: statements.evaluate,
    Assert: statements.check,
    Print: statements.show,
}
