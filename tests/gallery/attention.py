"""Attention forward: heads first or rows first, equal or grouped heads."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, normal
from tests.gallery.online import LOG2E, ROW, absorb, begin, divide, logarithm, take
from tests.gallery.references import attend

HALF, FLOAT = "float16", "float32"


@tw.jit(out_idx=[3], target="cpu", pass_configs={"tl.enable_fast_math": True})
def heads_first(
    B: int, H: int, S: int, keys: int, D: int, causal: bool, BM: int = 64, BN: int = 64, stages: int = 1,
    threads: int = 128,
):  # fmt: skip
    """There may be more keys than queries: the queries are then the last rows."""
    scale, past = D**-0.5 * LOG2E, keys - S

    def seen(row, key):
        return row >= key if causal else key < keys

    @T.prim_func
    def heads_first(
        Q: T.Tensor((B, H, S, D), HALF),
        K: T.Tensor((B, H, keys, D), HALF),
        V: T.Tensor((B, H, keys, D), HALF),
        Out: T.Tensor((B, H, S, D), HALF),
    ):
        with T.Kernel(T.ceildiv(S, BM), H, B, threads=threads) as (bx, h, b):
            queries = T.alloc_shared((BM, D), HALF)
            key = T.alloc_shared((BN, D), HALF)
            value = T.alloc_shared((BN, D), HALF)
            scores = T.alloc_fragment((BM, BN), FLOAT)
            weights = T.alloc_fragment((BM, BN), HALF)
            acc = T.alloc_fragment((BM, D), FLOAT)
            top = T.alloc_fragment((BM,), FLOAT)
            total = T.alloc_fragment((BM,), FLOAT)
            result = T.alloc_shared((BM, D), HALF)
            T.copy(Q[b, h, bx * BM : (bx + 1) * BM, :], queries)
            begin(acc, total, top)
            last = T.min(T.ceildiv(keys, BN), T.ceildiv((bx + 1) * BM + past, BN)) if causal else T.ceildiv(keys, BN)
            for n in T.Pipelined(last, num_stages=stages):
                take(
                    K[b, h, n * BN : (n + 1) * BN, :], V[b, h, n * BN : (n + 1) * BN, :], (queries, key, value),
                    scores, weights, acc, total, top, scale, (bx * BM + past, n * BN), seen, False,
                )  # fmt: skip
            divide(acc, total)
            T.copy(acc, result)
            T.copy(result, Out[b, h, bx * BM : (bx + 1) * BM, :])

    return heads_first


def rows_first(
    B: int, H: int, S: int, D: int, causal: bool, groups: int = 1, BM: int = 64, BN: int = 64, stages: int = 1,
    threads: int = 128,
) -> Any:  # fmt: skip
    """`groups` heads of queries share a head of keys; the denominators' logarithms are kept for a backward pass."""
    scale = D**-0.5 * LOG2E

    @T.prim_func
    def rows_first(
        Q: T.Tensor((B, S, H, D), HALF),
        K: T.Tensor((B, S, H // groups, D), HALF),
        V: T.Tensor((B, S, H // groups, D), HALF),
        Out: T.Tensor((B, S, H, D), HALF),
        Lse: T.Tensor((B, H, S), FLOAT),
    ):
        with T.Kernel(T.ceildiv(S, BM), H, B, threads=threads) as (bx, h, b):
            queries = T.alloc_shared((BM, D), HALF)
            key = T.alloc_shared((BN, D), HALF)
            value = T.alloc_shared((BN, D), HALF)
            scores = T.alloc_fragment((BM, BN), FLOAT)
            weights = T.alloc_fragment((BM, BN), HALF)
            acc = T.alloc_fragment((BM, D), FLOAT)
            top = T.alloc_fragment((BM,), FLOAT)
            total = T.alloc_fragment((BM,), FLOAT)
            T.copy(Q[b, bx * BM : (bx + 1) * BM, h, :], queries)
            begin(acc, total, top)
            for n in T.Pipelined(T.ceildiv((bx + 1) * BM, BN) if causal else T.ceildiv(S, BN), num_stages=stages):
                T.copy(K[b, n * BN : (n + 1) * BN, h // groups, :], key)
                T.clear(scores)
                T.gemm(queries, key, scores, transpose_B=True, policy=ROW)
                for i, j in T.Parallel(BM, BN):
                    unseen = bx * BM + i < n * BN + j if causal else n * BN + j >= S
                    if unseen:
                        scores[i, j] = -T.infinity(FLOAT)
                absorb(scores, weights, acc, total, top, scale, False)
                T.copy(V[b, n * BN : (n + 1) * BN, h // groups, :], value)
                T.gemm(weights, value, acc, policy=ROW)
            divide(acc, total)
            T.copy(acc, Out[b, bx * BM : (bx + 1) * BM, h, :])
            logarithm(total, top, scale)
            T.copy(total, Lse[b, h, bx * BM : (bx + 1) * BM])

    return rows_first


def split_heads(x: np.ndarray, copies: int = 1) -> np.ndarray:
    """(batch, rows, heads, dim) as (batch, heads, rows, dim), heads repeated."""
    return np.repeat(x.transpose(0, 2, 1, 3), copies, axis=1)


def heads_first_data(B: int, H: int, S: int, keys: int, D: int, causal: bool, **_: Any) -> Data:
    q, k, v = normal(1, (B, H, S, D)), normal(2, (B, H, keys, D)), normal(3, (B, H, keys, D))
    mask = np.tril(np.ones((S, keys), bool), keys - S) if causal else None
    found = attend(q, k, v, D**-0.5, mask)
    return Data({"Q": q, "K": k, "V": v}, {"Out": Expected(found.out, found.bound)})


def rows_first_data(B: int, H: int, S: int, D: int, causal: bool, groups: int = 1, **_: Any) -> Data:
    q = normal(1, (B, S, H, D))
    k, v = normal(2, (B, S, H // groups, D)), normal(3, (B, S, H // groups, D))
    mask = np.tril(np.ones((S, S), bool)) if causal else None
    found = attend(split_heads(q), split_heads(k, groups), split_heads(v, groups), D**-0.5, mask)
    return Data(
        {"Q": q, "K": k, "V": v},
        {
            "Out": Expected(split_heads(found.out), split_heads(found.bound)),
            "Lse": Expected(found.lse, found.lse_bound),
        },
    )


REAL = {"BM": 128, "BN": 128, "threads": 256}
ENTRIES = [
    Entry(
        "attention, heads first",
        ("flash_attention/example_mha_fwd_bhsd.py",),
        heads_first,
        heads_first_data,
        {"B": 1, "H": 2, "S": 64, "keys": 100, "D": 64, "causal": True},
        {"B": 1, "H": 32, "S": 2048, "keys": 4096, "D": 128, "causal": True, **REAL},
    ),
    Entry(
        "attention, rows first",
        ("flash_attention/example_mha_fwd_bshd.py",),
        rows_first,
        rows_first_data,
        {"B": 1, "H": 2, "S": 100, "D": 64, "causal": False},
        {"B": 8, "H": 32, "S": 4096, "D": 128, "causal": False, **REAL, "stages": 2},
    ),
    Entry(
        "attention, grouped heads",
        ("flash_attention/example_gqa_fwd_bshd.py",),
        rows_first,
        rows_first_data,
        {"B": 1, "H": 2, "S": 128, "D": 64, "causal": True, "groups": 2},
        {"B": 1, "H": 64, "S": 4096, "D": 128, "causal": True, "groups": 16, **REAL, "stages": 2},
    ),
]
