"""Batched matrix products over the machine's axes.

All blocks of a chunk that run one T.gemm do so in one call. Where the left operand does not depend on a block axis on which
the right one does, and the other way round, the blocks' products are the tiles of one larger product, which BLAS
computes at its full speed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class Products:
    """Computes products into memory that the next product reuses: fresh pages cost as much as the sum itself."""

    def __init__(self) -> None:
        self._memory: dict[np.dtype, np.ndarray] = {}

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a · b over the last two axes, broadcast over the leading ones; valid until the next product."""
        a, b = _narrowed(a), _narrowed(b)
        rows = [x for x in range(a.ndim - 2) if a.shape[x] > 1]
        columns = [x for x in range(b.ndim - 2) if b.shape[x] > 1]
        if set(rows) & set(columns) or not (rows or columns):
            lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            return np.matmul(a, b, out=self._take((*lead, a.shape[-2], b.shape[-1]), a.dtype))
        return self._outer(a, b, rows, columns)

    def _take(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        size = math.prod(shape)
        memory = self._memory.get(dtype)
        if memory is None or memory.size < size:
            memory = self._memory[dtype] = np.empty(size, dtype)
        return memory[:size].reshape(shape)

    def _outer(self, a: np.ndarray, b: np.ndarray, rows: list[int], columns: list[int]) -> np.ndarray:
        """Blocks along `rows` belong to a, along `columns` to b: (rows · m, k) times (k, columns · n)."""
        lead = a.ndim - 2
        m, k = a.shape[-2:]
        n = b.shape[-1]
        blocks_a = [a.shape[x] for x in rows]
        blocks_b = [b.shape[x] for x in columns]
        left = _axes(a, [*rows, lead, lead + 1]).reshape(-1, k)
        right = _axes(b, [lead, *columns, lead + 1]).reshape(k, -1)
        out = self._take((left.shape[0], right.shape[1]), a.dtype)
        flat = np.matmul(left, right, out=out).reshape(*blocks_a, m, *blocks_b, n)
        # from (rows…, m, columns…, n) to the machine's axes, then m, n
        order: list[int] = []
        shape: list[int] = []
        for axis in range(lead):
            if axis in rows:
                order.append(rows.index(axis))
            elif axis in columns:
                order.append(len(rows) + 1 + columns.index(axis))
            shape.append(a.shape[axis] if axis in rows else (b.shape[axis] if axis in columns else 1))
        order += [len(rows), len(rows) + 1 + len(columns)]
        return _with_ones(flat.transpose(order), shape)


def _narrowed(x: np.ndarray) -> np.ndarray:
    """The array with repeated leading axes (stride 0) brought back to extent 1."""
    cut = tuple(
        slice(0, 1) if s == 0 and n > 1 else slice(None) for s, n in zip(x.strides[:-2], x.shape[:-2], strict=True)
    )
    return x[cut] if cut else x


def _axes(x: np.ndarray, keep: list[int]) -> np.ndarray:
    """`x` with the axes `keep` in this order; the others have extent 1."""
    rest = [axis for axis in range(x.ndim) if axis not in keep]
    moved = x.transpose([*rest, *keep])
    return moved[(0,) * len(rest)]


def _with_ones(x: np.ndarray, lead: list[int]) -> np.ndarray:
    index: list[Any] = [slice(None) if n > 1 else None for n in lead]
    return x[(*index, slice(None), slice(None))]
