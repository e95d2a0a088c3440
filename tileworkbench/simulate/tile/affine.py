"""Index values that stay symbolic: base + Σ step · axis over the machine's axes.

Most index expressions are of this form. Kept so, an access is a strided view of the tensor instead of a gather, a
bounds test is two comparisons, and a predicate such as `row < M` folds to a truth value wherever it cannot vary.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Affine:
    """An integer for every point of the axes. `sizes[a]` is 1 where `steps[a]` is 0."""

    __slots__ = ("_dense", "base", "sizes", "steps")

    def __init__(self, base: int, steps: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        self.base, self.steps, self.sizes = base, steps, sizes
        self._dense: np.ndarray | None = None

    @property
    def low(self) -> int:
        return self.base + sum(s * (n - 1) for s, n in zip(self.steps, self.sizes, strict=True) if s < 0)

    @property
    def high(self) -> int:
        return self.base + sum(s * (n - 1) for s, n in zip(self.steps, self.sizes, strict=True) if s > 0)

    def lift(self, axes: int) -> Affine:
        """The same values with `axes` more trailing axes."""
        return Affine(self.base, self.steps + (0,) * axes, self.sizes + (1,) * axes)

    def restrict(self, axis: int, start: int, stop: int) -> Affine:
        """The values with one axis limited to [start, stop)."""
        step = self.steps[axis]
        if step == 0:
            return self
        sizes = (*self.sizes[:axis], stop - start, *self.sizes[axis + 1 :])
        return Affine(self.base + step * start, self.steps, sizes)

    def dense(self, dtype: Any = np.int64) -> np.ndarray:
        """The values as an array whose extent is 1 on the axes they do not depend on."""
        if self._dense is None or self._dense.dtype != dtype:
            out: Any = np.full((1,) * len(self.sizes), self.base, np.int64)
            for axis, (step, size) in enumerate(zip(self.steps, self.sizes, strict=True)):
                if size > 1:
                    shape = tuple(size if a == axis else 1 for a in range(len(self.sizes)))
                    out = out + (np.arange(size, dtype=np.int64) * step).reshape(shape)
            self._dense = out.astype(dtype)
        return self._dense


def axis_values(axis: int, size: int, rank: int) -> Affine:
    """0, 1, …, size − 1 along one axis."""
    steps = tuple(int(a == axis) for a in range(rank)) if size > 1 else (0,) * rank
    return Affine(0, steps, tuple(size if a == axis else 1 for a in range(rank)))


def add(x: Any, y: Any) -> Any:
    """x + y of ints and Affines."""
    if type(x) is int:
        return x + y if type(y) is int else Affine(x + y.base, y.steps, y.sizes)
    if type(y) is int:
        return Affine(x.base + y, x.steps, x.sizes)
    steps = tuple(a + b for a, b in zip(x.steps, y.steps, strict=True))
    sizes = tuple(max(a, b) if s else 1 for a, b, s in zip(x.sizes, y.sizes, steps, strict=True))
    return _plain(Affine(x.base + y.base, steps, sizes))


def scale(x: Any, by: int) -> Any:
    """x · by."""
    if type(x) is int:
        return x * by
    if by == 0:
        return 0
    return Affine(x.base * by, tuple(s * by for s in x.steps), x.sizes)


def subtract(x: Any, y: Any) -> Any:
    return add(x, scale(y, -1))


def _plain(x: Affine) -> int | Affine:
    return x if any(x.steps) else x.base


def low_high(x: Any) -> tuple[int, int]:
    """The least and the greatest value of an int or an Affine."""
    return (x, x) if type(x) is int else (x.low, x.high)


def divide(x: Affine, by: int) -> Any:
    """x // by when every step and the base make it affine again, else None."""
    if all(s % by == 0 for s in x.steps):
        return _plain(Affine(x.base // by, tuple(s // by for s in x.steps), x.sizes))
    low, high = x.low // by, x.high // by
    return low if low == high else None


def modulo(x: Affine, by: int) -> Any:
    """x % by when it is affine again, else None."""
    if all(s % by == 0 for s in x.steps):
        return x.base % by
    low, high = x.low // by, x.high // by
    return add(x, -low * by) if low == high else None


Box = tuple[tuple[int, int], ...]
_MOST_PARTIAL = 16


def boxes(indices: list[Any], extents: tuple[int, ...], sizes: tuple[int, ...]) -> list[Box] | None:
    """The axes' ranges cut into boxes in which every index lies inside its extent; what is left out lies outside.

    None when that would take many boxes (indices that mix axes)."""
    done: list[Box] = []
    todo: list[tuple[Box, list[Any]]] = [(tuple((0, n) for n in sizes), indices)]
    while todo:
        box, current = todo.pop()
        bad = next((d for d, i in enumerate(current) if _outside(i, extents[d])), None)
        if bad is None:
            done.append(box)
            continue
        index = current[bad]
        if type(index) is int:
            continue
        axis = max(range(len(sizes)), key=lambda a: abs(index.steps[a]) * (index.sizes[a] - 1))
        whole, partial = _split(index, axis, extents[bad])
        if len(partial) > _MOST_PARTIAL or len(todo) > 4 * _MOST_PARTIAL:
            return None
        for start, stop in [whole, *((x, x + 1) for x in partial)]:
            if start < stop:
                todo.append((_cut(box, axis, start, stop), [_restrict(i, axis, start, stop) for i in current]))
    return done


def _outside(index: Any, extent: int) -> bool:
    low, high = low_high(index)
    return low < 0 or high >= extent


def _restrict(index: Any, axis: int, start: int, stop: int) -> Any:
    return index if type(index) is int else _plain_if_single(index.restrict(axis, start, stop), axis)


def _plain_if_single(index: Affine, axis: int) -> Any:
    if index.sizes[axis] > 1 or not index.steps[axis]:
        return index
    return _plain(Affine(index.base, (*index.steps[:axis], 0, *index.steps[axis + 1 :]), index.sizes))


def _cut(box: Box, axis: int, start: int, stop: int) -> Box:
    origin = box[axis][0]
    return (*box[:axis], (origin + start, origin + stop), *box[axis + 1 :])


def _split(index: Affine, axis: int, extent: int) -> tuple[tuple[int, int], list[int]]:
    """Positions of `axis` for which the index is inside whatever the other axes are, and those partly inside."""
    step, size = index.steps[axis], index.sizes[axis]
    rest = Affine(index.base, tuple(0 if a == axis else s for a, s in enumerate(index.steps)), index.sizes)
    low, high = rest.low, rest.high
    at = np.arange(size, dtype=np.int64) * step
    inside = (at + low >= 0) & (at + high < extent)
    touching = (at + high >= 0) & (at + low < extent)
    where = np.flatnonzero(inside)
    whole = (int(where[0]), int(where[-1]) + 1) if where.size else (0, 0)
    return whole, [int(x) for x in np.flatnonzero(touching & ~inside)]
