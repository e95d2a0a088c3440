"""Batched matrix products over the machine's axes.

All blocks of a chunk that run one T.gemm do so in one call. Along a block axis on which only the left operand depends,
the blocks' rows are rows of one taller product; where only the right one depends, columns of one wider product. BLAS
then works on few large matrices instead of many small ones."""

from __future__ import annotations

import math

import numpy as np


class Products:
    """Computes products into memory that the next product reuses: fresh pages cost as much as the sum itself."""

    def __init__(self) -> None:
        self._memory: dict[np.dtype, np.ndarray] = {}

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a · b over the last two axes, broadcast over the leading ones; valid until the next product."""
        a, b = _narrowed(a), _narrowed(b)
        lead = range(a.ndim - 2)
        both = [x for x in lead if a.shape[x] > 1 and b.shape[x] > 1]
        rows = [x for x in lead if a.shape[x] > 1 and b.shape[x] == 1]
        columns = [x for x in lead if b.shape[x] > 1 and a.shape[x] == 1]
        batch = tuple(a.shape[x] for x in both)
        left = _axes(a, [*both, *rows, a.ndim - 2, a.ndim - 1]).reshape(*batch, -1, a.shape[-1])
        right = _axes(b, [*both, b.ndim - 2, *columns, b.ndim - 1]).reshape(*batch, b.shape[-2], -1)
        flat = np.matmul(left, right, out=self._take((*batch, left.shape[-2], right.shape[-1]), a.dtype))
        return _spread(flat, a, b, both, rows, columns)

    def _take(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        size = math.prod(shape)
        memory = self._memory.get(dtype)
        if memory is None or memory.size < size:
            memory = self._memory[dtype] = np.empty(size, dtype)
        return memory[:size].reshape(shape)


def _narrowed(x: np.ndarray) -> np.ndarray:
    """The array with repeated leading axes (stride 0) brought back to extent 1."""
    cut = tuple(slice(0, 1) if s == 0 else slice(None) for s in x.strides[:-2])
    return x[cut] if cut else x


def _axes(x: np.ndarray, keep: list[int]) -> np.ndarray:
    """`x` with the axes `keep` in this order; the others have extent 1."""
    rest = [axis for axis in range(x.ndim) if axis not in keep]
    return np.asarray(x.transpose([*rest, *keep])[(0,) * len(rest)])


def _spread(
    flat: np.ndarray, a: np.ndarray, b: np.ndarray, both: list[int], rows: list[int], columns: list[int]
) -> np.ndarray:
    """(both…, rows · m, columns · n) as the machine's axes, then m, n: a view."""
    lead = a.ndim - 2
    sizes = [*(a.shape[x] for x in both), *(a.shape[x] for x in rows), a.shape[-2]]
    sizes += [*(b.shape[x] for x in columns), b.shape[-1]]
    order = [*both, *rows, lead, *columns, lead + 1]
    missing = [x for x in range(lead) if x not in order]
    full = flat.reshape(*sizes, *(1,) * len(missing))
    place = {axis: n for n, axis in enumerate([*order, *missing])}
    return full.transpose([place[axis] for axis in range(lead + 2)])
