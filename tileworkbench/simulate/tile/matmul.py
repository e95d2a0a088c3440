"""Batched matrix products over the machine's axes.

All blocks of a chunk that run one T.gemm do so in one call. Where the left operand does not depend on a block axis on which
the right one does, and the other way round, the blocks' products are the tiles of one larger product, which BLAS
computes at its full speed."""

from __future__ import annotations

from typing import Any

import numpy as np


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a · b over the last two axes, broadcast over the leading ones; a new array (perhaps not contiguous)."""
    a, b = _narrowed(a), _narrowed(b)
    rows = [x for x in range(a.ndim - 2) if a.shape[x] > 1]
    columns = [x for x in range(b.ndim - 2) if b.shape[x] > 1]
    if set(rows) & set(columns) or not (rows or columns):
        return np.matmul(a, b)
    return _outer(a, b, rows, columns)


def _narrowed(x: np.ndarray) -> np.ndarray:
    """The array with repeated leading axes (stride 0) brought back to extent 1."""
    cut = tuple(
        slice(0, 1) if s == 0 and n > 1 else slice(None) for s, n in zip(x.strides[:-2], x.shape[:-2], strict=True)
    )
    return x[cut] if cut else x


def _outer(a: np.ndarray, b: np.ndarray, rows: list[int], columns: list[int]) -> np.ndarray:
    """Blocks along `rows` belong to a, along `columns` to b: (rows · m, k) times (k, columns · n)."""
    lead = a.ndim - 2
    m, k = a.shape[-2:]
    n = b.shape[-1]
    blocks_a = [a.shape[x] for x in rows]
    blocks_b = [b.shape[x] for x in columns]
    left = _axes(a, [*rows, lead, lead + 1]).reshape(-1, k)
    right = _axes(b, [lead, *columns, lead + 1]).reshape(k, -1)
    flat = np.matmul(left, right).reshape(*blocks_a, m, *blocks_b, n)
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


def _axes(x: np.ndarray, keep: list[int]) -> np.ndarray:
    """`x` with the axes `keep` in this order; the others have extent 1."""
    rest = [axis for axis in range(x.ndim) if axis not in keep]
    moved = x.transpose([*rest, *keep])
    return moved[(0,) * len(rest)]


def _with_ones(x: np.ndarray, lead: list[int]) -> np.ndarray:
    index: list[Any] = [slice(None) if n > 1 else None for n in lead]
    return x[(*index, slice(None), slice(None))]
