"""The running softmax that attention kernels share, as macros. Tiles of scores and weights are (rows, keys), `acc` is
(rows, dim), `total` and `top` are (rows,)."""

from __future__ import annotations

import tileworkbench.language as T

ROW = T.GemmWarpPolicy.FullRow
LOG2E = 1.4426950408889634


@T.macro
def begin(acc, total, top):
    """Nothing seen yet."""
    T.fill(acc, 0)
    T.fill(total, 0)
    T.fill(top, -T.infinity("float32"))


@T.macro
def weigh(scores, total, top, shrink, scale, may_be_empty):
    """One tile of scores becomes exp2((score - top) * scale), and `shrink` what everything gathered before must be
    multiplied by; `total` is already. may_be_empty: a row may have seen no key yet."""
    rows, columns = scores.shape
    before = T.alloc_fragment((rows,), "float32")
    part = T.alloc_fragment((rows,), "float32")
    T.copy(top, before)
    T.reduce_max(scores, top, dim=1, clear=False)
    if may_be_empty:
        for i in T.Parallel(rows):
            top[i] = T.max(top[i], -1.0e30)
    for i in T.Parallel(rows):
        shrink[i] = T.exp2((before[i] - top[i]) * scale)
    for i, j in T.Parallel(rows, columns):
        scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
    T.reduce_sum(scores, part, dim=1)
    for i in T.Parallel(rows):
        total[i] = total[i] * shrink[i] + part[i]


@T.macro
def absorb(scores, weights, acc, total, top, scale, may_be_empty):
    """Takes one tile of scores in: weights, a narrower copy of them, and `acc` rescaled to the new maximum."""
    rows, width = acc.shape
    shrink = T.alloc_fragment((rows,), "float32")
    weigh(scores, total, top, shrink, scale, may_be_empty)
    for i, j in T.Parallel(rows, width):
        acc[i, j] *= shrink[i]
    T.copy(scores, weights)


@T.macro
def take(keys, values, tiles, scores, weights, acc, total, top, scale, first, seen, may_be_empty):
    """One step of attention: `keys` and `values` go through their tiles, those of queries, keys and values; a row sees
    a key where `seen(row, key)`, counted from `first`."""
    query, key, value = tiles
    rows, columns = scores.shape
    T.copy(keys, key)
    for i, j in T.Parallel(rows, columns):
        scores[i, j] = T.if_then_else(seen(first[0] + i, first[1] + j), 0, -T.infinity("float32"))
    T.gemm(query, key, scores, transpose_B=True, policy=ROW)
    absorb(scores, weights, acc, total, top, scale, may_be_empty)
    T.copy(values, value)
    T.gemm(weights, value, acc, policy=ROW)


@T.macro
def divide(acc, total):
    rows, width = acc.shape
    for i, j in T.Parallel(rows, width):
        acc[i, j] /= total[i]


@T.macro
def logarithm(total, top, scale):
    """The base-2 logarithm of the denominators, in place."""
    rows = total.shape[0]
    for i in T.Parallel(rows):
        total[i] = T.log2(total[i]) + top[i] * scale
