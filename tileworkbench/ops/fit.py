"""Where a spread loop finds a fragment's elements: registers as linear forms of the loop, proven by tables over all of
it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir.evaluate import evaluate, is_index_arithmetic
from ..ir.expr import Const, Var
from ..ir.node import walk
from ..ir.stmt import For
from ..layout import (
    Distribution,
    same,
)
from .nest import Nest, Use, identity


@dataclass(frozen=True)
class Fit:
    """Where a loop finds a fragment element: register = base + Σ digit · weight over the loop's register digits and the
    serial loops around the access."""

    base: int
    weights: tuple[int, ...]
    inner: tuple[tuple[Var, int], ...] = ()


def fit(nest: Nest, loop: Distribution, use: Use, layout: Distribution) -> Fit | None:
    """The register of each access as a linear form of the loop's digits, proven over the whole loop by table; None when
    some thread does not hold the element it needs, or the register depends on the thread."""
    if not all(is_index_arithmetic(i) for i in use.indices):
        return None
    dims, loops = identity(use, nest), use.inner
    if dims == tuple(range(len(nest.vars))) and (layout is loop or same(layout, loop)):
        strides = _reg_strides(loop)
        if strides is not None:
            return Fit(0, strides)
    inner = [(f.var, *limits) for f in loops if (limits := _constant_range(f)) is not None]
    points = []
    for values in product(*[range(a, b) for _, a, b in inner]) if inner else [()]:
        env = {v: value for (v, _, _), value in zip(inner, values, strict=True)}
        points.append((values, _registers(nest, loop, use, layout, env)))
        if points[-1][1] is None:
            return None
    return _linear(loop, inner, points)


def _constant_range(f: For) -> tuple[int, int] | None:
    """Start and stop of a loop that counts by one between constants and is not empty."""
    if not (isinstance(f.start, Const) and isinstance(f.stop, Const) and isinstance(f.step, Const)):
        return None
    start, stop = int(f.start.value), int(f.stop.value)
    return (start, stop) if f.step.value == 1 and stop > start else None


def _reg_strides(loop: Distribution) -> tuple[int, ...] | None:
    extents = loop.reg_extents
    weights = []
    for i in range(len(extents)):
        unit = [0] * len(extents)
        unit[i] = 1
        weights.append(int(loop.register(unit)))
    return tuple(weights)


def _registers(
    nest: Nest, loop: Distribution, use: Use, layout: Distribution, env: dict[Var, int]
) -> np.ndarray | None:
    """Register number per loop register index (1-D), or None."""
    table, valid = loop.table(), loop.valid()
    scope: dict[Any, Any] = dict(env)
    for d, var in enumerate(nest.vars):
        scope[var] = table[..., d].astype(np.int64)
    for guard in use.guards:
        if is_index_arithmetic(guard) and all(v in scope for v in walk(guard) if isinstance(v, Var)):
            valid = valid & np.asarray(evaluate(guard, scope), dtype=bool)
    try:
        coords = [np.broadcast_to(np.asarray(evaluate(i, scope)), valid.shape) for i in use.indices]
    except KeyError:
        return None
    for coord, extent in zip(coords, use.buffer.shape, strict=True):
        if ((coord < 0) | (coord >= extent))[valid].any():
            return None
    coords = [np.where(valid, c, 0) for c in coords]
    threads = loop.base + np.arange(table.shape[0])[:, None]
    register, held = layout.locate(threads, *coords)
    held = np.broadcast_to(np.asarray(held), valid.shape)
    if not held[valid].all():
        return None
    register = np.broadcast_to(np.asarray(register), valid.shape)
    first = np.where(valid.any(0), np.take_along_axis(register, valid.argmax(0)[None, :], 0)[0], -1)
    if (np.where(valid, register, first[None, :]) != first[None, :]).any():
        return None
    return first


def _linear(loop: Distribution, inner: Any, points: Any) -> Fit | None:
    """A linear form through the points, checked at every one of them (unused register slots, marked −1, are free)."""
    extents = loop.reg_extents
    count = max(1, math.prod(extents))
    digits = np.array([loop.register_digits(r) for r in range(count)], dtype=np.int64).reshape(count, len(extents))
    rows, values = [], []
    for at, registers in points:
        for r in range(count):
            if registers[r] >= 0:
                rows.append([1, *digits[r], *at])
                values.append(int(registers[r]))
    if not rows:
        return Fit(0, (0,) * len(extents), tuple((v, 0) for v, _, _ in inner))
    a, b = np.array(rows, dtype=np.float64), np.array(values, dtype=np.float64)
    solution = np.rint(np.linalg.lstsq(a, b, rcond=None)[0])
    if not np.array_equal(a @ solution, b):
        return None
    weights = [int(w) for w in solution]
    n = len(extents)
    return Fit(
        weights[0],
        tuple(weights[1 : 1 + n]),
        tuple((v, w) for (v, _, _), w in zip(inner, weights[1 + n :], strict=True)),
    )


def require_fit(nest: Nest, loop: Distribution, use: Use, layout: Distribution) -> Fit:
    """The access's registers; InternalError when a conversion is missing."""
    found = fit(nest, loop, use, layout)
    if found is None:
        raise InternalError(
            f"fragment {use.buffer.name} is not where this loop needs it",
            rule="layouts are converted before loops are emitted",
            loc=use.indices[0].loc if use.indices else None,
        )
    return found
