"""The step of attention backward that its kernels share: one tile of queries against a block's tile of keys."""

from __future__ import annotations

import tileworkbench.language as T
from tests.gallery.online import LOG2E, ROW


@T.macro
def push(rows, tiles, narrow, sums, scale, first, seen):
    """rows: of the step's queries, gradients of their results, logarithms of denominators and row products; they go
    through the tiles after those of keys and values, the last of which takes the scores' gradients. narrow: fragments
    for weights and scores' gradients as operands. sums: the gradients of keys, values and queries, the last of this
    step alone. A query sees a key where `seen(key, query)`, counted from `first`; None: everywhere."""
    queries, gradients, logarithms, products = rows
    key, value, query, g, lse, delta, ds_tile = tiles
    narrow_p, narrow_ds = narrow
    dk, dv, dq = sums
    BM, BN = ds_tile.shape
    p = T.alloc_fragment((BM, BN), "float32")
    ds = T.alloc_fragment((BM, BN), "float32")
    T.copy(queries, query)
    T.clear(p)
    T.gemm(key, query, p, transpose_B=True, policy=ROW)
    T.copy(logarithms, lse)
    for i, j in T.Parallel(BM, BN):
        p[i, j] = T.exp2(p[i, j] * (scale * LOG2E) - lse[j])
    if seen is not None:
        for i, j in T.Parallel(BM, BN):
            p[i, j] = T.if_then_else(seen(first[0] + i, first[1] + j), p[i, j], 0)
    T.copy(gradients, g)
    T.clear(ds)
    T.gemm(value, g, ds, transpose_B=True, policy=ROW)
    T.copy(p, narrow_p)
    T.gemm(narrow_p, g, dv, policy=ROW)
    T.copy(products, delta)
    for i, j in T.Parallel(BM, BN):
        narrow_ds[i, j] = p[i, j] * (ds[i, j] - delta[j]) * scale
    T.gemm(narrow_ds, query, dk, policy=ROW)
    T.copy(narrow_ds, ds_tile)
    T.clear(dq)
    T.gemm(ds_tile, key, dq, transpose_A=True)
