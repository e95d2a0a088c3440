"""Statements printed from the declaration of their fields: `target = name(operands, option=value)  # reason`."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from functools import cache
from typing import Any

from ..instr import AtomicMem, CommitGroup, CopyAsync, Instr, LdMatrix, LoadMem, Reg, Shuffle, StMatrix, Vote, WaitGroup
from ..node import Node
from .expression import ExprText

_TARGETS = ("dst", "d", "old")  # a register operand of this name is what the instruction gives
_NAMES: dict[type, str] = {LoadMem: "load", CopyAsync: "cp_async", CommitGroup: "commit", WaitGroup: "wait_group"}
_NONE = object()


def instruction(show: ExprText, i: Instr) -> str:
    """An instruction in compact form, its reason as a comment."""
    kind, skip = type(i), ("reason", "body")
    name = _NAMES.get(kind) or snake(kind)
    if kind is AtomicMem:
        name, skip = f"atomic_{i.op}", (*skip, "op")  # type: ignore[attr-defined]
    elif kind is Shuffle:
        name, skip = f"shfl_{i.kind}", (*skip, "kind")  # type: ignore[attr-defined]
    elif kind is Vote:
        name, skip = str(i.kind), (*skip, "kind")  # type: ignore[attr-defined]
    elif kind is LdMatrix or kind is StMatrix:
        name = f"{kind.__name__.lower()}_x{i.num}{'_trans' if i.transposed else ''}"  # type: ignore[attr-defined]
        skip = (*skip, "num", "transposed")
    text = call(show, i, name, skip, _TARGETS)
    reason = getattr(i, "reason", "")
    return f"{text}  # {reason}" if reason else text


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


@cache
def declared(kind: type) -> tuple[tuple[str, Any], ...]:
    """Field names of a node class with their defaults."""
    wanted = kind._fields  # type: ignore[attr-defined]
    defaults = {f.name: _NONE if f.default is MISSING else f.default for f in fields(kind)}
    return tuple((name, defaults[name]) for name in wanted)


@cache
def snake(kind: type) -> str:
    """CamelCase as camel_case; Mem falls away: StoreMem is `store`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower().removesuffix("_mem")
