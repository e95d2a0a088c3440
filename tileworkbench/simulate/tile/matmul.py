"""Batched matrix products over the machine's axes.

All blocks of a chunk that run one T.gemm do so in one call. Along a block axis on which only the left operand depends,
the blocks' rows are rows of one taller product; where only the right one depends, columns of one wider product. BLAS
then works on few large matrices instead of many small ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import blas, pool

_WORTH_A_THREAD = 2**22  # multiplications


class Products:
    """Computes products into memory that the next product reuses: fresh pages cost as much as the sum itself."""

    def __init__(self) -> None:
        self._memory: dict[np.dtype, np.ndarray] = {}

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a · b over the last two axes, broadcast over the leading ones; valid until the next product."""
        a, b = _narrowed(a), _narrowed(b)
        axes = _Axes.of(a, b)
        left, right = axes.left(a), axes.right(b)
        out = self._take((*left.shape[:-2], left.shape[-2], right.shape[-1]), a.dtype)
        _shared(out, left, right, lambda c, x, y: np.matmul(x, y, out=c))
        return axes.spread(out, a, b)

    def add_product(self, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
        """c += a · b in place, if the arrays allow it."""
        if blas.multiply_add is None or not c.dtype == a.dtype == b.dtype == np.float32 or 0 in (*c.shape, *a.shape):
            return False
        a, b = _narrowed(a), _narrowed(b)
        axes = _Axes.of(a, b)
        flat = axes.gathered(c, a, b)
        if flat is None:
            return False
        _shared(flat, axes.left(a), axes.right(b), _add_each)
        return True

    def _take(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        size = math.prod(shape)
        memory = self._memory.get(dtype)
        if memory is None or memory.size < size:
            memory = self._memory[dtype] = np.empty(size, dtype)
        return memory[:size].reshape(shape)


def _add_each(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    for place in np.ndindex(c.shape[:-2]):
        blas.multiply_add(c[place], a[place], b[place])  # type: ignore[misc]


def _quietly(work: Callable[..., object], *arrays: np.ndarray) -> None:
    with np.errstate(all="ignore"):  # a thread does not inherit it
        work(*arrays)


def _shared(c: np.ndarray, a: np.ndarray, b: np.ndarray, work: Callable[..., object]) -> None:
    """work(c, a, b), shared between the cores along the longest axis of the batch or the rows when it is worth it."""
    if not blas.single_thread.works:
        work(c, a, b)
        return
    count = min(pool.cores(), math.prod(c.shape) * a.shape[-1] // _WORTH_A_THREAD)
    axis = max(range(c.ndim - 1), key=lambda x: c.shape[x])
    count = max(min(count, c.shape[axis]), 1)
    tasks = []
    for part in range(count):
        at = [slice(None)] * c.ndim
        at[axis] = slice(c.shape[axis] * part // count, c.shape[axis] * (part + 1) // count)
        place = tuple(at)
        right = b[place] if axis < c.ndim - 2 else b
        tasks.append(functools.partial(_quietly, work, c[place], a[place], right))
    with blas.single_thread:
        pool.run_all(tasks)


def _narrowed(x: np.ndarray) -> np.ndarray:
    """The array with repeated leading axes (stride 0) brought back to extent 1."""
    cut = tuple(slice(0, 1) if s == 0 else slice(None) for s in x.strides[:-2])
    return x[cut] if cut else x


def _axes(x: np.ndarray, keep: list[int]) -> np.ndarray:
    """`x` with the axes `keep` in this order; the others have extent 1."""
    rest = [axis for axis in range(x.ndim) if axis not in keep]
    return np.asarray(x.transpose([*rest, *keep])[(0,) * len(rest)])


@dataclass(frozen=True, slots=True)
class _Axes:
    """How leading axes enter a product: both operands depend on `both`, only the left one on `rows`, only the right
    one on `columns`."""

    both: list[int]
    rows: list[int]
    columns: list[int]
    lead: int

    @classmethod
    def of(cls, a: np.ndarray, b: np.ndarray) -> _Axes:
        lead = range(a.ndim - 2)
        return cls(
            [x for x in lead if a.shape[x] > 1 and b.shape[x] > 1],
            [x for x in lead if a.shape[x] > 1 and b.shape[x] == 1],
            [x for x in lead if b.shape[x] > 1 and a.shape[x] == 1],
            a.ndim - 2,
        )

    def left(self, a: np.ndarray) -> np.ndarray:
        """(both…, rows · m, k)."""
        ordered = _axes(a, [*self.both, *self.rows, self.lead, self.lead + 1])
        return ordered.reshape(*ordered.shape[: len(self.both)], -1, a.shape[-1])

    def right(self, b: np.ndarray) -> np.ndarray:
        """(both…, k, columns · n)."""
        ordered = _axes(b, [*self.both, self.lead, *self.columns, self.lead + 1])
        return ordered.reshape(*ordered.shape[: len(self.both)], b.shape[-2], -1)

    def spread(self, flat: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(both…, rows · m, columns · n) as the machine's axes, then m, n: a view."""
        sizes = [*(a.shape[x] for x in (*self.both, *self.rows)), a.shape[-2]]
        sizes += [*(b.shape[x] for x in self.columns), b.shape[-1]]
        order = [*self.both, *self.rows, self.lead, *self.columns, self.lead + 1]
        missing = [x for x in range(self.lead) if x not in order]
        full = flat.reshape(*sizes, *(1,) * len(missing))
        place = {axis: n for n, axis in enumerate([*order, *missing])}
        return full.transpose([place[axis] for axis in range(self.lead + 2)])

    def gathered(self, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        """The inverse of `spread`: c as (both…, rows · m, columns · n), contiguous rows, if that is a view of it."""
        want = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        if c.shape != (*want, a.shape[-2], b.shape[-1]):
            return None
        tall = _merged(c, [*self.rows, self.lead])
        wide = _merged(c, [*self.columns, self.lead + 1])
        if tall is None or wide is None or wide[1] != c.itemsize or tall[1] < wide[0] * c.itemsize:
            return None
        shape = [*(c.shape[x] for x in self.both), tall[0], wide[0]]
        strides = [*(c.strides[x] for x in self.both), tall[1], wide[1]]
        return np.lib.stride_tricks.as_strided(c, shape, strides)


def _merged(x: np.ndarray, axes: list[int]) -> tuple[int, int] | None:
    """Extent and stride of neighbouring axes taken as one; None when they do not follow one another in memory."""
    axes = [axis for axis in axes if x.shape[axis] > 1] or axes[-1:]
    size, stride = x.shape[axes[-1]], x.strides[axes[-1]]
    for axis in reversed(axes[:-1]):
        if x.strides[axis] != size * stride:
            return None
        size *= x.shape[axis]
    return size, stride
