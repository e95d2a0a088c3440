"""Small right kernels that each use another part of the language: seeds of mutants."""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import tileworkbench.language as T


def branches() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(4, threads=32) as bx:
            tx = T.get_thread_binding(0)
            total = T.alloc_var("int32", init=0)
            for i in T.serial(0, n, 2):
                if i > 8 and tx < 16:
                    total = total + i
                elif i == 3:
                    total += 2
                else:
                    total = T.max(total, i * 2)
            while total > 100:
                total -= 7
            A[bx * 16 + tx % 16] = total if tx < 4 else -total

    return kernel


def casts() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float16"), B: T.Tensor((64, 32), "float32"), s: T.float32):
        with T.Kernel(2, threads=64) as bx:
            a = T.alloc_fragment((32, 32), "float16")
            T.copy(A[bx * 32 : bx * 32 + 32, :], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = T.cast(T.exp(T.cast(a[i, j], "float32") * s), "float16")
            for i, j in T.Parallel(32, 32):
                B[bx * 32 + i, j] = T.if_then_else(i >= j, T.float32(a[i, j]), 0.0)

    return kernel


def atomics() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((256,), "int32"), C: T.Tensor((16,), "int32")):
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((16,), "int32")
            T.clear(s)
            for i in T.Parallel(128):
                T.atomic_add(s[A[bx * 128 + i] % 16], 1)
            for i in T.Parallel(16):
                T.atomic_add(C[i], s[i])

    return kernel


def macros() -> Any:
    @T.macro
    def scale(x, y, by):
        for i, j in T.Parallel(16, 32):
            y[i, j] = x[i, j] * by

    @T.prim_func
    def kernel(A: T.Tensor((16, 32), "float32"), B: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=32) as _:
            x = T.alloc_shared((16, 32), "float32")
            y = T.alloc_shared((16, 32), "float32")
            T.copy(A, x)
            for k in T.unroll(2):
                scale(x, y, k + 1.5)
            T.copy(y, B)

    return kernel


def scans() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32"), M: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=128) as _:
            x = T.alloc_shared((32, 64), "float32")
            f = T.alloc_fragment((32, 64), "float32")
            m = T.alloc_fragment((32,), "float32")
            T.copy(A, x)
            T.cumsum(x, dim=1)
            T.copy(x, f)
            T.reduce_max(f, m, dim=1, clear=True)
            T.copy(m, M)
            T.copy(x, B)

    return kernel


def rings() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 256), "float16"), B: T.Tensor((256, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c, policy=T.GemmWarpPolicy.FullRow)
            T.copy(c, C)

    return kernel


FACTORIES = (branches, casts, atomics, macros, scans, rings)
