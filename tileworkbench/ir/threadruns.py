"""Tests on thread numbers: over how many neighbouring threads a comparison or quotient surely has one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

from .expr import Binary, Compare, Const, Special, Var

_THREADS = ("thread", "role_thread")
_TURNED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


@dataclass(frozen=True)
class Steps:
    """An index that is floor(thread / run), starting again every `period` threads (0: never)."""

    run: int
    period: int = 0


def thread_steps(sizes: tuple[int, ...], variables: tuple[Var, ...]) -> dict[Var, Steps]:
    """The thread variables of a block of these extents, x fastest."""
    out: dict[Var, Steps] = {}
    step = 1
    for var, extent in zip(variables, (*sizes, 1, 1), strict=False):
        out[var] = Steps(step, step * extent)
        step *= extent
    return out


def run_length(e: Any, known: Mapping[Var, Steps]) -> int:
    """Aligned runs of this many threads surely agree on `e`; 0 when it is no test or quotient of a thread number."""
    if isinstance(e, Binary) and e.op == "floordiv":
        steps = _steps(e, known)
        return gcd(steps.run, steps.period) if steps is not None else 0
    if not isinstance(e, Compare):
        return 0
    op, a, b = e.op, e.a, e.b
    if isinstance(a, Const):
        op, a, b = _TURNED.get(op, op), b, a
    steps = _steps(a, known)
    if steps is None or not isinstance(b, Const) or not isinstance(b.value, int):
        return 0
    ends = {"lt": (b.value,), "ge": (b.value,), "le": (b.value + 1,), "gt": (b.value + 1,)}
    return gcd(steps.period, *(steps.run * n for n in ends.get(op, (b.value, b.value + 1))))


def _steps(e: Any, known: Mapping[Var, Steps]) -> Steps | None:
    if isinstance(e, Special):
        return Steps(1) if e.name in _THREADS else None
    if isinstance(e, Var):
        return known.get(e)
    if not isinstance(e, Binary) or not isinstance(e.b, Const) or not isinstance(e.b.value, int) or e.b.value < 1:
        return None
    inner = _steps(e.a, known)
    if inner is None:
        return None
    if e.op == "floordiv":
        return Steps(inner.run * e.b.value, inner.period)
    if e.op == "floormod":
        return Steps(inner.run, gcd(inner.run * e.b.value, inner.period))
    return None
