"""The first tutorial's kernels: an elementwise add, and a pipelined matrix product with ReLU. The notebook shows the
text of the inner functions as it stands here."""

# Kernels are the language's text, which a type checker cannot read.
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import numpy as np

from . import language as T


def add(M: int = 1000, N: int = 1536, dtype: str = "float16") -> Any:
    """C = A + B, a tile of 64 × 128 elements a block."""

    @T.prim_func
    def add(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, 128), dtype)
            b = T.alloc_shared((64, 128), dtype)
            T.copy(A[by * 64, bx * 128], a)
            T.copy(B[by * 64, bx * 128], b)
            for i, j in T.Parallel(64, 128):
                a[i, j] = a[i, j] + b[i, j]
            T.copy(a, C[by * 64, bx * 128])

    return add


def gemm_relu(M: int = 512, N: int = 512, K: int = 512, dtype: str = "float16") -> Any:
    """C = max(A · B, 0), with up to three tiles of A and B under way."""

    @T.prim_func
    def gemm_relu(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=128) as (bx, by):
            a = T.alloc_shared((128, 64), dtype)
            b = T.alloc_shared((64, 128), dtype)
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
                T.copy(A[by * 128, k * 64], a)
                T.copy(B[k * 64, bx * 128], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(128, 128):
                c[i, j] = T.max(c[i, j], 0)
            T.copy(c, C[by * 128, bx * 128])

    return gemm_relu


def add_reference(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """What `add` computes, by NumPy."""
    return A + B


def gemm_relu_reference(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """What `gemm_relu` computes, by NumPy."""
    return np.maximum(A @ B, 0)
