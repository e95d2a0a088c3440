"""Work that a mask of blocks leaves out: tiles of a product, and tiles of keys in attention."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, normal, numbers
from tests.gallery.online import LOG2E, begin, divide, take
from tests.gallery.references import attend

HALF, FLOAT = "float16", "float32"


@tw.jit(target="cpu")
def product(A, B, Mask, BM: int, BN: int, BK: int, stages: int, threads: int, raster: bool):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), HALF)
    B: T.Tensor((K, N), HALF)
    Mask: T.Tensor((M // BM, N // BN, K // BK), "bool")
    C = T.empty((M, N), HALF)
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
        left = T.alloc_shared((BM, BK), HALF)
        right = T.alloc_shared((BK, BN), HALF)
        acc = T.alloc_fragment((BM, BN), FLOAT)
        result = T.alloc_shared((BM, BN), HALF)
        T.use_swizzle(panel_size=10, enable=raster)
        T.clear(acc)
        for step in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
            if Mask[by, bx, step]:
                T.copy(A[by * BM, step * BK], left)
                T.copy(B[step * BK, bx * BN], right)
                T.gemm(left, right, acc)
        T.copy(acc, result)
        T.copy(result, C[by * BM, bx * BN])
    return C


def attention(B: int, H: int, S: int, D: int, BM: int = 64, BN: int = 64, stages: int = 1, threads: int = 128) -> Any:
    """Causal; a row of blocks keeps its own mask in a fragment."""
    scale, blocks = D**-0.5 * LOG2E, -(-S // BN)

    @T.prim_func
    def attention(
        Q: T.Tensor((B, H, S, D), HALF),
        K: T.Tensor((B, H, S, D), HALF),
        V: T.Tensor((B, H, S, D), HALF),
        Mask: T.Tensor((B, H, -(-S // BM), blocks), "bool"),
        Out: T.Tensor((B, H, S, D), HALF),
    ):
        with T.Kernel(T.ceildiv(S, BM), H, B, threads=threads) as (bx, h, b):
            query = T.alloc_shared((BM, D), HALF)
            key = T.alloc_shared((BN, D), HALF)
            value = T.alloc_shared((BN, D), HALF)
            result = T.alloc_shared((BM, D), HALF)
            scores = T.alloc_fragment((BM, BN), FLOAT)
            weights = T.alloc_fragment((BM, BN), HALF)
            acc = T.alloc_fragment((BM, D), FLOAT)
            top = T.alloc_fragment((BM,), FLOAT)
            total = T.alloc_fragment((BM,), FLOAT)
            wanted = T.alloc_fragment((blocks,), "bool")
            T.copy(Q[b, h, bx * BM : (bx + 1) * BM, :], query)
            T.copy(Mask[b, h, bx, :], wanted)
            begin(acc, total, top)
            for n in T.Pipelined(T.min(blocks, T.ceildiv((bx + 1) * BM, BN)), num_stages=stages):
                if wanted[n] != 0:
                    take(
                        K[b, h, n * BN : (n + 1) * BN, :], V[b, h, n * BN : (n + 1) * BN, :], (query, key, value),
                        scores, weights, acc, total, top, scale, (bx * BM, n * BN), operator.ge, True,
                    )  # fmt: skip
            divide(acc, total)
            T.copy(acc, result)
            T.copy(result, Out[b, h, bx * BM : (bx + 1) * BM, :])

    return attention


def product_data(M: int, N: int, K: int, BM: int, BN: int, BK: int, **_: Any) -> Data:
    a, b = numbers(1, (M, K), HALF, 3), numbers(2, (K, N), HALF, 3)
    mask = np.random.default_rng(3).random((M // BM, N // BN, K // BK)) < 0.5
    truth = np.zeros((M, N))
    for i, j, k in np.argwhere(mask):
        rows, columns, depth = (slice(n * size, (n + 1) * size) for n, size in ((i, BM), (j, BN), (k, BK)))
        truth[rows, columns] += a[rows, depth].astype(float) @ b[depth, columns].astype(float)
    return Data({"A": a, "B": b, "Mask": mask}, {"C": Expected(truth)})


def attention_data(B: int, H: int, S: int, D: int, BM: int = 64, BN: int = 64, **_: Any) -> Data:
    q, k, v = (normal(seed, (B, H, S, D)) for seed in (1, 2, 3))
    mask = np.random.default_rng(4).random((B, H, -(-S // BM), -(-S // BN))) < 0.5
    mask |= np.eye(-(-S // BM), -(-S // BN), dtype=bool)  # every row sees something
    wide = np.repeat(np.repeat(mask, BM, 2), BN, 3)[:, :, :S, :S]
    found = attend(q, k, v, D**-0.5, wide & np.tril(np.ones((S, S), bool)))
    return Data({"Q": q, "K": k, "V": v, "Mask": mask}, {"Out": Expected(found.out, found.bound)})


ENTRIES = [
    Entry("gemm with blocks left out", ("blocksparse_gemm/example_blocksparse_gemm.py",), product.compile,
          product_data,
          {"M": 128, "N": 128, "K": 160, "BM": 64, "BN": 64, "BK": 32, "stages": 2, "threads": 128, "raster": True},
          {"M": 1024, "N": 1024, "K": 1024, "BM": 128, "BN": 128, "BK": 32, "stages": 2, "threads": 128,
           "raster": True}),
    Entry("attention with blocks left out", ("blocksparse_attention/example_tilelang_block_sparse_attn.py",),
          attention, attention_data, {"B": 1, "H": 1, "S": 192, "D": 64},
          {"B": 4, "H": 16, "S": 4096, "D": 128, "stages": 2}),
]  # fmt: skip
