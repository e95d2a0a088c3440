"""Kernels in every style, as users write them."""

from __future__ import annotations

from typing import Any

import tileworkbench as tw
import tileworkbench.language as T

BLOCK = 32


def copy_kernel(M: Any, N: Any, dtype: str = "float16", block: int = BLOCK) -> Any:
    @T.prim_func
    def double(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            for i, j in T.Parallel(block, block):
                B[by * block + i, bx * block + j] = (
                    A[by * block + i, bx * block + j] + A[by * block + i, bx * block + j]
                )

    return double


@tw.jit(out_idx=[-1], target="cpu")
def lazy_double(M: int, N: int, dtype: str = "float16") -> Any:
    return copy_kernel(M, N, dtype)


@tw.jit(target="cpu")
def eager_double(A, block: int = BLOCK):
    M, N = T.const("M N")
    A: T.Tensor[(M, N), "float32"]
    B = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
        for i, j in T.Parallel(block, block):
            B[by * block + i, bx * block + j] = A[by * block + i, bx * block + j] * 2
    return B


@tw.jit(target="cpu")
def scaled(A, s: T.float32 = 2.0):
    m = T.dynamic("m")
    A: T.Tensor[(m,), "float32"]
    B = T.empty((m,), "float32")
    C = T.empty((m,), "float32")
    with T.Kernel(T.ceildiv(m, BLOCK)) as bx:
        for i in T.Parallel(BLOCK):
            B[bx * BLOCK + i] = A[bx * BLOCK + i] * s
            C[bx * BLOCK + i] = A[bx * BLOCK + i] + s
    return B, C


def gemm(M: Any, N: Any, K: Any, dtype: str = "float16", out: str = "float32") -> Any:
    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), dtype)
            b = T.alloc_shared((32, 64), dtype)
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])

    return gemm
