"""Scores by which rows are selected: weighted positive parts of the products of many heads with eight-bit keys, over
ranges of keys or over chosen blocks of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, numbers

FLOAT, INT, FP8 = "float32", "int32", "float8_e4m3fn"


@tw.jit(target="cpu", pass_configs={"tl.enable_fast_math": True})
def over_ranges(Q, K, Scale, Weights, Begin, End, Logits, H: int, D: int, BN: int, BQ: int, threads: int = 512):
    """A block takes BQ queries and the keys from the first one's to the last one's; others keep what they hold."""
    S, keys = T.const("S, keys")
    Q: T.Tensor[[S * H, D], FP8]
    K: T.Tensor[[keys, D], FP8]
    Scale: T.Tensor[[keys], FLOAT]
    Weights: T.Tensor[[S, H], FLOAT]
    Begin: T.Tensor[[S], INT]
    End: T.Tensor[[S], INT]
    Logits: T.Tensor[[S, keys], FLOAT]
    with T.Kernel(T.ceildiv(S, BQ), threads=threads) as bx:
        query = T.alloc_shared([BQ * H, D], FP8)
        key = T.alloc_shared([BN, D], FP8)
        scale = T.alloc_fragment([BN], FLOAT)
        products = T.alloc_fragment([BN, BQ * H], FLOAT)
        by_head = T.reshape(products, (BN, BQ, H))
        logits = T.alloc_fragment([BN, BQ], FLOAT)
        weights = T.alloc_fragment([BQ, H], FLOAT)
        first = T.alloc_var(INT)
        last = T.alloc_var(INT)
        first = 2147483647
        last = -2147483648
        for q in T.serial(BQ):
            first = T.min(first, T.min(Begin[bx * BQ + q], keys))
        for q in T.serial(BQ):
            last = T.max(last, T.min(End[bx * BQ + q], keys))
        T.copy(Q[bx * BQ * H, 0], query)
        T.copy(Weights[bx * BQ, 0], weights)
        for n in T.Pipelined(T.ceildiv(last - first, BN), num_stages=3):
            T.copy(K[first + n * BN, 0], key)
            T.copy(Scale[first + n * BN], scale)
            T.gemm(key, query, products, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
            for i, q, h in T.Parallel(BN, BQ, H):
                by_head[i, q, h] = T.max(by_head[i, q, h] * scale[i], 0) * weights[q, h]
            T.reduce_sum(by_head, logits, dim=-1, clear=True)
            for q, i in T.Parallel(BQ, BN):
                Logits[bx * BQ + q, first + n * BN + i] = logits[i, q]


@tw.jit(target="cpu", pass_configs={"tl.enable_fast_math": True})
def over_blocks(
    Q, K, Scale, Blocks, Weights, Begin, End, H: int, D: int, block: int, chosen: int, BN: int, threads: int = 256
):
    """A query and its chosen blocks of keys; keys outside its range score minus infinity."""
    S, keys = T.const("S, keys")
    Q: T.Tensor[[S * H, D], FP8]
    K: T.Tensor[[keys, D], FP8]
    Scale: T.Tensor[[keys], FLOAT]
    Blocks: T.Tensor[[S, chosen], "int64"]
    Weights: T.Tensor[[S, H], FLOAT]
    Begin: T.Tensor[[S], INT]
    End: T.Tensor[[S], INT]
    Logits = T.empty((S, chosen * block), FLOAT)
    with T.Kernel(S, threads=threads) as s:
        query = T.alloc_shared([H, D], FP8)
        key = T.alloc_shared([BN, D], FP8)
        scale = T.alloc_shared([BN], FLOAT)
        products = T.alloc_fragment([BN, H], FLOAT)
        by_head = T.reshape(products, (BN, 1, H))
        logits = T.alloc_fragment([BN, 1], FLOAT)
        weights = T.alloc_fragment([1, H], FLOAT)
        T.copy(Q[s * H : s * H + H, :], query)
        T.copy(Weights[s, :], weights)
        for c in T.serial(chosen):
            start = T.cast(Blocks[s, c], INT) * block
            for n in T.Pipelined(block // BN, num_stages=1):
                T.copy(K[start + n * BN : start + (n + 1) * BN, :], key)
                for i in T.Parallel(BN):
                    scale[i] = Scale[start + n * BN + i]
                T.gemm(key, query, products, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
                for i, q, h in T.Parallel(BN, 1, H):
                    by_head[i, q, h] = T.max(by_head[i, q, h] * scale[i], 0) * weights[q, h]
                T.reduce_sum(by_head, logits, dim=-1, clear=True)
                for i in T.Parallel(BN):
                    at = start + n * BN + i
                    if at < Begin[s] or at >= End[s]:
                        logits[i, 0] = -T.infinity(FLOAT)
                for i in T.Parallel(BN):
                    Logits[s, c * block + n * BN + i] = logits[i, 0]
    return Logits


def scores(S: int, keys: int, H: int, D: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Small integers and powers of two: all sums are exact in any order."""
    q, k = numbers(1, (S * H, D), FP8, 2), numbers(2, (keys, D), FP8, 2)
    scale = (2.0 ** np.random.default_rng(3).integers(-2, 3, keys)).astype(np.float32)
    weights = numbers(4, (S, H), FLOAT, 4)
    products = q.astype(float).reshape(S, H, D) @ k.astype(float).T * scale
    return {"Q": q, "K": k, "Scale": scale, "Weights": weights}, (np.maximum(products, 0) * weights[:, :, None]).sum(1)


def over_ranges_data(S: int, keys: int, H: int, D: int, BN: int, BQ: int, **_: Any) -> Data:
    inputs, truth = scores(S, keys, H, D)
    rng = np.random.default_rng(5)
    begin, end = rng.integers(0, keys // 4, S).astype(np.int32), rng.integers(keys // 2, keys + 1, S).astype(np.int32)
    written = np.zeros(truth.shape, bool)
    for at in range(0, S, BQ):
        low, high = begin[at : at + BQ].min(), end[at : at + BQ].max()
        written[at : at + BQ, low : low + -(-(high - low) // BN) * BN] = True
    outputs = {"Logits": Expected(np.where(written, truth, 0), initial=np.zeros(truth.shape))}
    return Data({**inputs, "Begin": begin, "End": end}, outputs)


def over_blocks_data(S: int, keys: int, H: int, D: int, block: int, chosen: int, **_: Any) -> Data:
    inputs, truth = scores(S, keys, H, D)
    rng = np.random.default_rng(5)
    begin, end = rng.integers(0, keys // 4, S).astype(np.int32), rng.integers(keys // 2, keys + 1, S).astype(np.int32)
    blocks = np.stack([rng.permutation(keys // block)[:chosen] for _ in range(S)]).astype(np.int64)
    at = (blocks[:, :, None] * block + np.arange(block)).reshape(S, -1)
    inside = (at >= begin[:, None]) & (at < end[:, None])
    found = np.where(inside, np.take_along_axis(truth, at, axis=1), -np.inf)
    return Data({**inputs, "Blocks": blocks, "Begin": begin, "End": end}, {"Logits": Expected(found)})


ENTRIES = [
    Entry("scores over ranges", ("dsa_hisa/pool_mqa_fp8.py",), over_ranges.compile, over_ranges_data,
          {"S": 4, "keys": 200, "H": 32, "D": 64, "BN": 64, "BQ": 2, "threads": 128},
          {"S": 4096, "keys": 8192, "H": 64, "D": 128, "BN": 128, "BQ": 1, "threads": 256}),
    Entry("scores over blocks", ("dsa_hisa/block_sparse_mqa_fp8.py",), over_blocks.compile, over_blocks_data,
          {"S": 2, "keys": 512, "H": 64, "D": 64, "block": 128, "chosen": 2, "BN": 64, "threads": 128},
          {"S": 4096, "keys": 65536, "H": 64, "D": 128, "block": 128, "chosen": 64, "BN": 64}),
]  # fmt: skip
