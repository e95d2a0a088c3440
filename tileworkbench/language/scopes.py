"""A last look at a kernel that was read: every scalar and tile is used inside the block that made it.

Reads of names are checked where they happen; this finds values that left their block in a Python container."""

from __future__ import annotations

from ..ir.expr import Buffer, Load, Var
from ..ir.kernel import Kernel
from ..ir.node import Node, children
from ..ir.stmt import Alloc, For, If, Let, Region, Stmt, Store, While
from ..ops.parallel import Parallel
from .faults import fault


def check_scopes(kernel: Kernel) -> None:
    alive: set[Node] = {*kernel.params, *kernel.block_vars, *kernel.thread_vars, *kernel.symbols()}
    _body(kernel.body, alive)


def _body(body: tuple[Stmt, ...], alive: set[Node]) -> None:
    made: list[Node] = []
    for statement in body:
        _statement(statement, alive)
        if isinstance(statement, Let):
            made.append(statement.var)
        elif isinstance(statement, Alloc):
            made.append(statement.buffer)
        else:
            continue
        alive.add(made[-1])
    alive.difference_update(made)


def _statement(statement: Stmt, alive: set[Node]) -> None:
    if isinstance(statement, For):
        for bound in (statement.start, statement.stop, statement.step):
            _value(bound, statement, alive)
        _scoped((statement.var,), statement.body, alive)
    elif isinstance(statement, Parallel):
        for extent in statement.extents:
            _value(extent, statement, alive)
        _scoped(statement.vars, statement.body, alive)
    elif isinstance(statement, If):
        _value(statement.cond, statement, alive)
        _body(statement.then, alive)
        _body(statement.orelse, alive)
    elif isinstance(statement, While):
        _value(statement.cond, statement, alive)
        _body(statement.body, alive)
    elif not isinstance(statement, Alloc):
        nested = getattr(statement, "body", None)
        for child in children(statement):
            if isinstance(child, Stmt):
                continue
            if not (isinstance(statement, Let) and child is statement.var):
                _value(child, statement, alive)
        if isinstance(nested, tuple):
            _body(nested, alive)


def _scoped(vars: tuple[Var, ...], body: tuple[Stmt, ...], alive: set[Node]) -> None:
    alive.update(vars)
    _body(body, alive)
    alive.difference_update(vars)


def _value(value: object, statement: Stmt, alive: set[Node]) -> None:
    if not isinstance(value, Node):
        return
    if isinstance(value, Var | Buffer):
        if value not in alive:
            raise fault(
                f"`{value.name}` is used outside the block that defines it",
                "a value lives to the end of the block in which it was made",
                "do not keep it in a list past its block; use T.alloc_var or a tile made before the block",
                statement.loc,
            )
        return
    if isinstance(value, Load | Region | Store):
        _value(value.buffer, statement, alive)
    for child in children(value):
        _value(child, statement, alive)
