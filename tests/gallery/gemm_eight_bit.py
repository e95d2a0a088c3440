"""Products of eight-bit floats: plain, promoted every few steps, and scaled by rows and blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, numbers

FLOAT, FP8 = "float32", "float8_e4m3fn"


@tw.jit(target="cpu")
def eight_bit(A, B, BM: int, BN: int, BK: int, dtype: str, accum: str = FLOAT):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    C = T.empty((M, N), "float16")
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
        left = T.alloc_shared((BM, BK), dtype)
        right = T.alloc_shared((BN, BK), dtype)
        acc = T.alloc_fragment((BM, BN), accum)
        T.clear(acc)
        for step in T.Pipelined(T.ceildiv(K, BK), num_stages=3):
            T.copy(A[by * BM, step * BK], left)
            T.copy(B[bx * BN, step * BK], right)
            T.gemm(left, right, acc, transpose_B=True)
        T.copy(acc, C[by * BM, bx * BN])
    return C


@tw.jit(target="cpu")
def promoted(A, B, BM: int, BN: int, BK: int, dtype: str):
    """The matrix unit keeps fewer bits than float32: what it gathered over 128 elements moves to a second sum."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    C = T.empty((M, N), FLOAT)
    every, steps = max(128 // BK, 1), T.ceildiv(K, BK)
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
        left = T.alloc_shared((BM, BK), dtype)
        right = T.alloc_shared((BN, BK), dtype)
        result = T.alloc_shared((BM, BN), FLOAT)
        recent = T.alloc_fragment((BM, BN), FLOAT)
        acc = T.alloc_fragment((BM, BN), FLOAT)
        T.clear(recent)
        T.clear(acc)
        for step in T.Pipelined(steps, num_stages=3):
            T.copy(A[by * BM, step * BK], left)
            T.copy(B[bx * BN, step * BK], right)
            T.gemm(left, right, recent, transpose_B=True)
            if (step + 1) % every == 0:
                for i, j in T.Parallel(BM, BN):
                    acc[i, j] += recent[i, j]
                T.clear(recent)
        if steps % every != 0:
            for i, j in T.Parallel(BM, BN):
                acc[i, j] += recent[i, j]
        T.copy(acc, result)
        T.copy(result, C[by * BM, bx * BN])
    return C


def scaled(M: int, N: int, K: int, BN: int = 128, stages: int = 4) -> Any:
    """A has a scale a row and 128 columns, B one for every 128 by 128."""
    group = 128

    @T.prim_func
    def scaled(
        A: T.Tensor((M, K), FP8),
        B: T.Tensor((N, K), FP8),
        RowScale: T.Tensor((M, T.ceildiv(K, group)), FLOAT),
        BlockScale: T.Tensor((T.ceildiv(N, group), T.ceildiv(K, group)), FLOAT),
        C: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, 64), threads=128) as (bx, by):
            left = T.alloc_shared((64, group), FP8)
            right = T.alloc_shared((BN, group), FP8)
            result = T.alloc_shared((64, BN), "bfloat16")
            part = T.alloc_fragment((64, BN), FLOAT)
            acc = T.alloc_fragment((64, BN), FLOAT)
            T.use_swizzle(panel_size=10)
            T.clear(part)
            T.clear(acc)
            for step in T.Pipelined(T.ceildiv(K, group), num_stages=stages):
                T.copy(A[by * 64, step * group], left)
                T.copy(B[bx * BN, step * group], right)
                block = BlockScale[bx * BN // group, step]
                T.gemm(left, right, part, transpose_B=True)
                for i, j in T.Parallel(64, BN):
                    acc[i, j] += part[i, j] * (RowScale[by * 64 + i, step] * block)
                T.clear(part)
            T.copy(acc, result)
            T.copy(result, C[by * 64, bx * BN])

    return scaled


def eight_bit_data(M: int, N: int, K: int, dtype: str, **_: Any) -> Data:
    """Small integers: every sum is exact in any accumulator, and in float16."""
    a, b = numbers(1, (M, K), dtype, 3), numbers(2, (N, K), dtype, 3)
    return Data({"A": a, "B": b}, {"C": Expected(a.astype(float) @ b.astype(float).T)})


def scaled_data(M: int, N: int, K: int, **_: Any) -> Data:
    """Scales are powers of two, so all but the result's rounding is exact."""
    a, b = numbers(1, (M, K), FP8, 3), numbers(2, (N, K), FP8, 3)
    rng, groups = np.random.default_rng(3), -(-K // 128)
    rows = 2.0 ** rng.integers(-2, 2, (M, groups))
    blocks = 2.0 ** rng.integers(-2, 2, (-(-N // 128), groups))
    wide = np.repeat(rows, 128, 1)[:, :K] * a.astype(float)
    tall = np.repeat(np.repeat(blocks, 128, 0)[:N], 128, 1)[:, :K] * b.astype(float)
    inputs = {"A": a, "B": b, "RowScale": rows.astype(FLOAT), "BlockScale": blocks.astype(FLOAT)}
    return Data(inputs, {"C": Expected(wide @ tall.T)})


BLOCKS = {"BM": 64, "BN": 64}
LARGE = {"M": 1024, "N": 1024, "K": 8192, "BM": 128, "BN": 128, "BK": 64}
TWICE = ("gemm_fp8/example_tilelang_gemm_fp8_2xAcc.py",)
ENTRIES = [
    *[
        Entry(f"gemm of {kind}", ("gemm_fp8/example_tilelang_gemm_fp8.py",), eight_bit.compile, eight_bit_data,
              {"M": 64, "N": 96, "K": 192, **BLOCKS, "BK": 64, "dtype": kind}, {**LARGE, "dtype": kind})
        for kind in (FP8, "float8_e5m2")
    ],
    Entry("promoted gemm", TWICE, promoted.compile, eight_bit_data,
          {"M": 64, "N": 64, "K": 320, **BLOCKS, "BK": 64, "dtype": FP8}, {**LARGE, "dtype": FP8}),
    Entry("scaled gemm", ("deepseek_deepgemm/example_deepgemm_fp8_2xAcc.py",), scaled, scaled_data,
          {"M": 64, "N": 256, "K": 256}, {"M": 1024, "N": 2112, "K": 7168}),
]  # fmt: skip
