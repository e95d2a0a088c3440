"""Blocks that work through more than one tile."""

from __future__ import annotations

import tileworkbench.language as T

from .harness import everywhere, integers


def test_persistent() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((7, 5, 16, 16), "float32"), B: T.Tensor((7, 5, 16, 16), "float32")):
        with T.Kernel(4, threads=64) as bx:
            F = T.alloc_fragment((16, 16), "float32")
            for i, j in T.Persistent([7, 5], 4, bx):
                T.copy(A[i, j, 0:16, 0:16], F)
                for x, y in T.Parallel(16, 16):
                    F[x, y] = F[x, y] * 2
                T.copy(F, B[i, j, 0:16, 0:16])

    a = integers(1, (7, 5, 16, 16))
    everywhere(kernel, [a], a * 2)


def test_persistent_gemm() -> None:
    M = N = 128
    K = 64
    BM = BN = 64
    BK = 32

    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(3, threads=128) as bx:
            As = T.alloc_shared((BM, BK), "float16")
            Bs = T.alloc_shared((BK, BN), "float16")
            acc = T.alloc_fragment((BM, BN), "float32")
            for i, j in T.Persistent([T.ceildiv(M, BM), T.ceildiv(N, BN)], 3, bx):
                T.clear(acc)
                for k in T.Pipelined(K // BK, num_stages=2):
                    T.copy(A[i * BM, k * BK], As)
                    T.copy(B[k * BK, j * BN], Bs)
                    T.gemm(As, Bs, acc)
                T.copy(acc, C[i * BM, j * BN])

    a, b = integers(1, (M, K), "float16", 4), integers(2, (K, N), "float16", 4)
    k = everywhere(kernel, [a, b], a.astype(float) @ b.astype(float))
    assert not k["sm_90a"].notes


def test_grid_stride() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((1000,), "float32"), B: T.Tensor((1000,), "float32")):
        with T.Kernel(3, threads=64) as bx:
            tx = T.get_thread_binding()
            for i in T.serial(bx * 64 + tx, 1000, 192):
                B[i] = A[i] * 3

    a = integers(1, (1000,))
    everywhere(kernel, [a], a * 3)
