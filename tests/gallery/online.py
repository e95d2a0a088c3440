"""The running softmax that attention kernels share, as macros."""

from __future__ import annotations

import tileworkbench.language as T

LOG2E = 1.4426950408889634


@T.macro
def begin(acc, total, top):
    """Nothing seen yet."""
    T.fill(acc, 0)
    T.fill(total, 0)
    T.fill(top, -T.infinity("float32"))


@T.macro
def absorb(scores, weights, acc, total, top, scale, may_be_empty):
    """Takes one tile of scores in: they become exp2((score - top) * scale), `weights` a narrower copy of them, and what
    was gathered before is rescaled to the new maximum. may_be_empty: a row may have seen no key yet."""
    rows, columns = scores.shape
    width = acc.shape[1]
    before = T.alloc_fragment((rows,), "float32")
    shrink = T.alloc_fragment((rows,), "float32")
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
    for i, j in T.Parallel(rows, width):
        acc[i, j] *= shrink[i]
    T.copy(scores, weights)


@T.macro
def divide(acc, total):
    rows, width = acc.shape
    for i, j in T.Parallel(rows, width):
        acc[i, j] /= total[i]
