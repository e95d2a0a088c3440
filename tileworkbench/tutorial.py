"""The first tutorial's kernels: an elementwise add, and a pipelined matrix product with ReLU."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import language as T

TILE = 128


def add(M: int = 1024, N: int = 1024, dtype: str = "float16") -> Any:
    """C = A + B, a tile of 64 × 128 elements a block."""
    rows, columns = TILE // 2, TILE

    @T.prim_func
    def add(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(M, rows), threads=128) as (bx, by):
            a = T.alloc_shared((rows, columns), dtype)
            b = T.alloc_shared((rows, columns), dtype)
            T.copy(A[by * rows, bx * columns], a)
            T.copy(B[by * rows, bx * columns], b)
            for i, j in T.Parallel(rows, columns):
                a[i, j] = a[i, j] + b[i, j]
            T.copy(a, C[by * rows, bx * columns])

    return add


def gemm_relu(M: int = 512, N: int = 512, K: int = 512, dtype: str = "float16") -> Any:
    """C = max(A · B, 0) with three tiles of A and B under way."""
    rows, columns, depth = TILE, TILE, TILE // 2

    @T.prim_func
    def gemm_relu(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(M, rows), threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), dtype)
            b = T.alloc_shared((depth, columns), dtype)
            c = T.alloc_fragment((rows, columns), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, depth), num_stages=3):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(rows, columns):
                c[i, j] = T.max(c[i, j], 0)
            T.copy(c, C[by * rows, bx * columns])

    return gemm_relu


def add_reference(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return A + B


def gemm_relu_reference(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.maximum(A @ B, 0)
