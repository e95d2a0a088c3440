"""Statements printed from the declaration of their fields: `target = name(operands, option=value)  # reason`."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any

from ..instr import AtomicMem, CommitGroup, CopyAsync, Instr, LdMatrix, LoadMem, Reg, Shuffle, StMatrix, Vote, WaitGroup
from ..node import Node
from .expression import ExprText

_TARGETS = ("dst", "d", "old")  # a register operand of this name is what the instruction gives
_NAMES: dict[type, str] = {LoadMem: "load", CopyAsync: "cp_async", CommitGroup: "commit", WaitGroup: "wait_group"}
_NONE = object()
# Made once a class: every line of a printed kernel asks.
_DECLARED: dict[type, tuple[tuple[str, Any], ...]] = {}
_SNAKE: dict[type, str] = {}


def instruction(show: ExprText, i: Instr) -> str:
    """An instruction in compact form, its reason as a comment."""
    name, shown = _name(i)
    text = call(show, i, name, ("reason", "body", *shown), _TARGETS)
    reason = getattr(i, "reason", "")
    return f"{text}  # {reason}" if reason else text


def _name(i: Instr) -> tuple[str, tuple[str, ...]]:
    """The instruction's name, and the fields that the name says."""
    if isinstance(i, AtomicMem):
        return f"atomic_{i.op}", ("op",)
    if isinstance(i, Shuffle):
        return f"shfl_{i.kind}", ("kind",)
    if isinstance(i, Vote):
        return str(i.kind), ("kind",)
    if isinstance(i, (LdMatrix, StMatrix)):
        return f"{type(i).__name__.lower()}_x{i.num}{'_trans' if i.transposed else ''}", ("num", "transposed")
    return _NAMES.get(type(i)) or snake(type(i)), ()


def call(show: ExprText, n: Node, name: str, skip: tuple[str, ...] = (), targets: tuple[str, ...] = ()) -> str:
    """`name(...)` with the fields of `n`: those without a default in order, others by name where they differ."""
    arguments: list[str] = []
    target = ""
    for key, default in declared(type(n)):
        value = getattr(n, key)
        if key in skip or value is default or (default is None and value is None):
            continue
        if default is not _NONE and type(value) is type(default) and value == default:
            continue
        if key in targets and type(value) is Reg:
            target = f"{show.at(value, 0)} = "
        elif default is _NONE:
            arguments.append(show.at(value, 0))
        else:
            arguments.append(f"{key}={show.at(value, 0)}")
    return f"{target}{name}({', '.join(arguments)})"


def declared(kind: type[Node]) -> tuple[tuple[str, Any], ...]:
    """Field names of a node class with their defaults."""
    if kind in _DECLARED:
        return _DECLARED[kind]
    defaults = {f.name: _NONE if f.default is MISSING else f.default for f in fields(kind)}
    return _DECLARED.setdefault(kind, tuple((name, defaults[name]) for name in kind._fields))


def snake(kind: type) -> str:
    """CamelCase as camel_case; Mem falls away: StoreMem is `store`."""
    if kind not in _SNAKE:
        _SNAKE[kind] = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower().removesuffix("_mem")
    return _SNAKE[kind]
