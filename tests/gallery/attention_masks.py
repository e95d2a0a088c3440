"""Attention forward with a sink, with a window, and over a text that is there twice."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench.language as T
from tests.gallery.attention import split_heads
from tests.gallery.entry import Data, Entry, Expected, normal
from tests.gallery.online import LOG2E, ROW, absorb, begin, divide, logarithm, take
from tests.gallery.references import attend

FLOAT = "float32"


def with_sink(
    B: int, H: int, S: int, D: int, window: int | None, BM: int = 64, BN: int = 64, stages: int = 1, threads: int = 128
) -> Any:
    """Every head has a logit that takes weight and gives no value; `window`: how far back a row sees."""
    scale = D**-0.5 * LOG2E

    def inside(row, key):
        return (row >= key) & (row < key + window) if window else row >= key

    @T.prim_func
    def with_sink(
        Q: T.Tensor((B, H, S, D), "bfloat16"),
        K: T.Tensor((B, H, S, D), "bfloat16"),
        V: T.Tensor((B, H, S, D), "bfloat16"),
        Sinks: T.Tensor((H,), "bfloat16"),
        Out: T.Tensor((B, H, S, D), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(S, BM), H, B, threads=threads) as (bx, h, b):
            queries = T.alloc_shared((BM, D), "bfloat16")
            key = T.alloc_shared((BN, D), "bfloat16")
            value = T.alloc_shared((BN, D), "bfloat16")
            scores = T.alloc_fragment((BM, BN), FLOAT)
            weights = T.alloc_fragment((BM, BN), "bfloat16")
            acc = T.alloc_fragment((BM, D), FLOAT)
            top = T.alloc_fragment((BM,), FLOAT)
            total = T.alloc_fragment((BM,), FLOAT)
            T.copy(Q[b, h, bx * BM : (bx + 1) * BM, :], queries)
            begin(acc, total, top)
            first = T.max(0, (bx * BM - window + 1) // BN) if window else 0
            for n in T.Pipelined(first, T.min(T.ceildiv(S, BN), T.ceildiv((bx + 1) * BM, BN)), num_stages=stages):
                take(
                    K[b, h, n * BN : (n + 1) * BN, :], V[b, h, n * BN : (n + 1) * BN, :], (queries, key, value),
                    scores, weights, acc, total, top, scale,
                    (bx * BM, n * BN), inside, window is not None,
                )  # fmt: skip
            for i in T.Parallel(BM):
                total[i] += T.exp2(Sinks[h] * LOG2E - top[i] * scale)
            divide(acc, total)
            T.copy(acc, Out[b, h, bx * BM : (bx + 1) * BM, :])

    return with_sink


def two_views(B: int, H: int, S: int, D: int, group: int, BM: int = 64, stages: int = 1, threads: int = 128) -> Any:
    """Rows are a noisy copy of a text, then the text. A noisy row sees its own group of noisy rows and the clean groups
    before it; a clean row sees the clean groups up to its own."""
    scale, half, tiles = D**-0.5 * LOG2E, S // 2, S // 2 // BM

    @T.inline
    def seen(i, j, own, noisy):
        same = T.if_then_else(own, i // group == j // group, i // group > j // group)
        return T.if_then_else(noisy, same, i // group >= j // group)

    @T.prim_func
    def two_views(
        Q: T.Tensor((B, S, H, D), "bfloat16"),
        K: T.Tensor((B, S, H, D), "bfloat16"),
        V: T.Tensor((B, S, H, D), "bfloat16"),
        Out: T.Tensor((B, S, H, D), "bfloat16"),
        Lse: T.Tensor((B, H, S), FLOAT),
    ):
        with T.Kernel(S // BM, H, B, threads=threads) as (bx, h, b):
            queries = T.alloc_shared((BM, D), "bfloat16")
            key = T.alloc_shared((BM, D), "bfloat16")
            value = T.alloc_shared((BM, D), "bfloat16")
            scores = T.alloc_fragment((BM, BM), FLOAT)
            weights = T.alloc_fragment((BM, BM), "bfloat16")
            acc = T.alloc_fragment((BM, D), FLOAT)
            top = T.alloc_fragment((BM,), FLOAT)
            total = T.alloc_fragment((BM,), FLOAT)
            T.copy(Q[b, bx * BM : (bx + 1) * BM, h, :], queries)
            begin(acc, total, top)
            noisy = bx < tiles
            diagonal = T.if_then_else(noisy, bx, bx - tiles)
            for n in T.Pipelined(diagonal + T.if_then_else(noisy, 2, 1), num_stages=stages):
                own = n > diagonal
                if own:
                    T.copy(K[b, bx * BM : (bx + 1) * BM, h, :], key)
                else:
                    T.copy(K[b, half + n * BM : half + (n + 1) * BM, h, :], key)
                if n >= diagonal:
                    for i, j in T.Parallel(BM, BM):
                        scores[i, j] = T.if_then_else(seen(i, j, own, noisy), 0, -T.infinity(FLOAT))
                else:
                    T.clear(scores)
                T.gemm(queries, key, scores, transpose_B=True, policy=ROW)
                absorb(scores, weights, acc, total, top, scale, True)
                if own:
                    T.copy(V[b, bx * BM : (bx + 1) * BM, h, :], value)
                else:
                    T.copy(V[b, half + n * BM : half + (n + 1) * BM, h, :], value)
                T.gemm(weights, value, acc, policy=ROW)
            divide(acc, total)
            T.copy(acc, Out[b, bx * BM : (bx + 1) * BM, h, :])
            logarithm(total, top, scale)
            T.copy(total, Lse[b, h, bx * BM : (bx + 1) * BM])

    return two_views


def sink_data(B: int, H: int, S: int, D: int, window: int | None, **_: Any) -> Data:
    q, k, v = (normal(seed, (B, H, S, D), "bfloat16") for seed in (1, 2, 3))
    sinks = normal(4, (H,), "bfloat16")
    row, column = np.arange(S)[:, None], np.arange(S)
    mask = (row >= column) & (row < column + (window or S))
    found = attend(q, k, v, D**-0.5, mask, sinks.astype(np.float64)[:, None, None], "bfloat16")
    return Data({"Q": q, "K": k, "V": v, "Sinks": sinks}, {"Out": Expected(found.out, found.bound)})


def two_views_data(B: int, H: int, S: int, D: int, group: int, **_: Any) -> Data:
    q, k, v = (normal(seed, (B, S, H, D), "bfloat16") for seed in (1, 2, 3))
    noisy = np.arange(S) < S // 2
    place = np.arange(S) % (S // 2) // group
    mine, theirs, clean = place[:, None], place[None], ~noisy[None]
    mask = np.where(noisy[:, None], np.where(clean, mine > theirs, mine == theirs), clean & (mine >= theirs))
    found = attend(split_heads(q), split_heads(k), split_heads(v), D**-0.5, mask, dtype="bfloat16")
    outputs = {
        "Out": Expected(split_heads(found.out), split_heads(found.bound)),
        "Lse": Expected(found.lse, found.lse_bound),
    }
    return Data({"Q": q, "K": k, "V": v}, outputs)


ENTRIES = [
    Entry(
        "attention with a sink",
        ("attention_sink/example_mha_sink_fwd_bhsd.py",),
        with_sink,
        sink_data,
        {"B": 1, "H": 2, "S": 100, "D": 32, "window": None},
        {"B": 1, "H": 64, "S": 4096, "D": 128, "window": None, "BM": 128, "BN": 128, "stages": 2, "threads": 256},
    ),
    Entry(
        "attention with a sink and a window",
        ("attention_sink/example_mha_sink_fwd_bhsd.py",),
        with_sink,
        sink_data,
        {"B": 1, "H": 1, "S": 192, "D": 64, "window": 64},
        {"B": 1, "H": 64, "S": 4096, "D": 128, "window": 128, "BM": 128, "BN": 128, "stages": 2, "threads": 256},
    ),
    Entry(
        "attention over two views",
        ("block_causal_attention/block_causal_attention.py",),
        two_views,
        two_views_data,
        {"B": 1, "H": 1, "S": 256, "D": 64, "group": 16},
        {"B": 2, "H": 16, "S": 4096, "D": 128, "group": 32, "stages": 2},
    ),
]
