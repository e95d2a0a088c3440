"""Who touches which element of a shared tile, where threads index it themselves: proved by table, over every thread of
the role and every trip of the loops that the indices mention.

A tile whose every element has one thread needs no meeting between its accesses; one whose every element stays within a
warp needs that warp's meeting only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.arith import substitute
from ..ir.effects import accesses
from ..ir.evaluate import evaluate, is_index_arithmetic
from ..ir.expr import Buffer, Const, Expr, Load, Special, Var
from ..ir.kernel import Kernel
from ..ir.node import children, walk
from ..ir.op import ElementStmt, Op
from ..ir.planned import Issue, Role
from ..ir.stmt import For, Let, Stmt, Store

MOST = 1 << 20  # places that one access may be asked at
Range = tuple[int, int, int]


@dataclass(frozen=True)
class Use:
    """One element access: its indices, with scalars put in by value, and the trips of the loops around it."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    trips: Mapping[Var, Range]


def owners(role: Role, kernel: Kernel, warp: int) -> dict[Buffer, str]:
    """Tiles of the role's own element code with what each element stays within: "thread" or "warp"."""
    uses: dict[Buffer, list[Use] | None] = {}
    for use in _uses(role.body, {}, {}):
        if isinstance(use, Buffer):
            uses[use] = None
        elif (known := uses.setdefault(use.buffer, [])) is not None:
            known.append(use)
    threads = _threads(kernel, role, warp)
    found = {b: _scope(b, u, threads, warp) for b, u in uses.items() if u and not b.dtype.is_packed}
    return {b: scope for b, scope in found.items() if scope}


def _uses(body: tuple[Stmt, ...], lets: dict[Var, Expr], trips: dict[Var, Range]) -> Iterator[Use | Buffer]:
    """Every element access to a shared tile; the tile alone where an access is of another kind."""
    lets = dict(lets)
    for s in body:
        if isinstance(s, (Role, Op, Issue, ElementStmt)):
            yield from (a.buffer for a in accesses(s) if a.buffer.space == "shared")
            continue
        if isinstance(s, Store) and s.buffer.space == "shared":
            yield _use(s.buffer, s.indices, lets, trips)
        inner = trips
        if isinstance(s, For):
            inner = {**trips, s.var: _range(s)} if _range(s) else trips
        nested = tuple(c for c in children(s) if isinstance(c, Stmt))
        for e in (c for c in children(s) if isinstance(c, Expr)):
            loads = (n for n in walk(e) if isinstance(n, Load) and n.buffer.space == "shared")
            yield from (_use(n.buffer, n.indices, lets, trips) for n in loads)
        yield from _uses(nested, lets, inner)
        if isinstance(s, Let):
            lets[s.var] = substitute(s.value, lets)


def _use(buffer: Buffer, indices: tuple[Expr, ...], lets: dict[Var, Expr], trips: dict[Var, Range]) -> Use:
    return Use(buffer, tuple(substitute(i, lets) for i in indices), trips)


def _range(s: For) -> Any:
    bounds = (s.start, s.stop, s.step)
    if not all(isinstance(e, Const) and isinstance(e.value, int) for e in bounds) or s.step.value < 1:  # type: ignore[attr-defined]
        return None
    return tuple(e.value for e in bounds)  # type: ignore[attr-defined]


def _threads(kernel: Kernel, role: Role, warp: int) -> dict[Any, Any]:
    """The role's threads: their numbers, and what the kernel's thread indices are in them."""
    numbers = np.arange(role.first_warp * warp, (role.first_warp + role.warps) * warp)
    env: dict[Any, Any] = {"thread": numbers}
    step = 1
    for var, extent in zip(kernel.thread_vars, (*kernel.thread_shape, 1, 1), strict=False):
        env[var] = numbers // step % extent
        step *= extent
    return env


def _scope(buffer: Buffer, uses: list[Use], threads: dict[Any, Any], warp: int) -> str:
    if not all(isinstance(n, int) for n in buffer.shape):
        return ""
    size = int(np.prod(buffer.shape))
    numbers = threads["thread"]
    low, high = np.full(size, numbers[-1]), np.full(size, -1)
    for use in uses:
        where = _places(use, threads)
        if where is None:
            return ""
        who, at = where
        np.minimum.at(low, at, who)
        np.maximum.at(high, at, who)
    touched = high >= 0
    if (low == high)[touched].all():
        return "thread"
    return "warp" if (low // warp == high // warp)[touched].all() else ""


def _places(use: Use, threads: dict[Any, Any]) -> tuple[Any, Any] | None:
    """(threads, elements) of every time that the access may happen; None when its indices say more than that."""
    named = {n for i in use.indices for n in walk(i) if isinstance(n, (Var, Special))}
    loops = [v for v in use.trips if v in named]
    known = {*threads, *loops}
    if not all(is_index_arithmetic(i) for i in use.indices):
        return None
    if any((n.name if isinstance(n, Special) else n) not in known for n in named):
        return None
    ranges = [range(*use.trips[v]) for v in loops]
    count = threads["thread"].size * int(np.prod([len(r) for r in ranges]))
    if count > MOST:
        return None
    env: dict[Any, Any] = {}
    for i, (v, r) in enumerate(zip(loops, ranges, strict=True)):
        env[v] = np.asarray(r).reshape((1,) * (i + 1) + (-1,) + (1,) * (len(loops) - 1 - i))
    tail = (1,) * len(loops)
    env |= {key: value.reshape(-1, *tail) for key, value in threads.items()}
    at: Any = 0
    for index, extent in zip(use.indices, use.buffer.shape, strict=True):
        value = evaluate(index, env)
        if np.min(value, initial=0) < 0 or np.max(value, initial=0) >= extent:
            return None
        at = at * extent + value
    who, at = np.broadcast_arrays(env["thread"], at)
    return who.ravel(), at.ravel()
