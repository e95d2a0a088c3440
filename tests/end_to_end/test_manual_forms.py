"""More forms of kernels with barriers of their own: producers by cp.async, persistent blocks, swizzled grids."""

from __future__ import annotations

import tileworkbench.language as T

from .harness import everywhere, integers


def test_cp_async_producer() -> None:
    M = N = 64
    K = 128
    BK = 32

    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=256):
            As = T.alloc_shared((2, M, BK), "float16")
            Bs = T.alloc_shared((2, BK, N), "float16")
            acc = T.alloc_fragment((M, N), "float32")
            full = T.alloc_barrier([128] * 2)
            empty = T.alloc_barrier([128] * 2)
            with T.ws(1):
                for k in range(K // BK):
                    T.mbarrier_wait_parity(empty[k % 2], (k // 2 + 1) % 2)
                    T.copy(A[0, k * BK], As[k % 2, :, :])
                    T.copy(B[k * BK, 0], Bs[k % 2, :, :])
                    T.mbarrier_arrive(full[k % 2])
            with T.ws(0):
                T.clear(acc)
                for k in range(K // BK):
                    T.mbarrier_wait_parity(full[k % 2], k // 2 % 2)
                    T.gemm(As[k % 2, :, :], Bs[k % 2, :, :], acc)
                    T.mbarrier_arrive(empty[k % 2])
                T.copy(acc, C)

    a, b = integers(1, (M, K), "float16", 4), integers(2, (K, N), "float16", 4)
    everywhere(kernel, [a, b], a.astype(float) @ b.astype(float), ("sm_90a",))


def test_noinc_producer() -> None:
    M = 64
    K = 128
    BK = 32

    @T.prim_func
    def kernel(A: T.Tensor((4, M, 32), "float32"), C: T.Tensor((M, 32), "float32")):
        with T.Kernel(1, threads=256):
            As = T.alloc_shared((2, M, 32), "float32")
            acc = T.alloc_fragment((M, 32), "float32")
            full = T.alloc_barrier([128] * 2)
            empty = T.alloc_barrier([128] * 2)
            with T.ws(1):
                for k in range(4):
                    T.mbarrier_wait_parity(empty[k % 2], (k // 2 + 1) % 2)
                    T.async_copy(A[k, 0, 0], As[k % 2, :, :])
                    T.cp_async_barrier_noinc(full[k % 2])
            with T.ws(0):
                T.clear(acc)
                for k in range(4):
                    T.mbarrier_wait_parity(full[k % 2], k // 2 % 2)
                    for i, j in T.Parallel(M, 32):
                        acc[i, j] += As[k % 2, i, j]
                    T.mbarrier_arrive(empty[k % 2])
                T.copy(acc, C)

    a = integers(1, (4, M, 32))
    everywhere(kernel, [a], a.sum(0), ("sm_90a",))


def test_manual_pipelined() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            As = T.alloc_shared((64, 32), "float16")
            Bs = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 32], As)
                T.copy(B[k * 32, 0], Bs)
                T.wgmma_gemm(As, Bs, acc)
                T.wait_wgmma(0)
            T.copy(acc, C)

    a, b = integers(1, (64, 128), "float16", 4), integers(2, (128, 64), "float16", 4)
    k = everywhere(kernel, [a, b], a.astype(float) @ b.astype(float), ("sm_90a",))
    assert any("is not pipelined" in note for note in k["sm_90a"].notes)


def test_manual_swizzle() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((256, 64), "float16"), B: T.Tensor((256, 64), "float16")):
        with T.Kernel(1, 4, threads=128) as (bx, by):
            T.use_swizzle(2)
            S = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            T.tma_copy(A[by * 64, bx * 64], S, barrier=bar)
            T.mbarrier_arrive(bar)
            T.mbarrier_wait_parity(bar, 0)
            T.copy(S, B[by * 64, bx * 64])

    a = integers(1, (256, 64), "float16")
    everywhere(kernel, [a], a, ("sm_90a",))


def test_persistent_ws() -> None:
    BM = BN = 64
    BK = 32
    K = 64
    stages = 2
    tiles = 5

    @T.prim_func
    def kernel(
        A: T.Tensor((BM * tiles, K), "float16"),
        B: T.Tensor((K, BN), "float16"),
        C: T.Tensor((BM * tiles, BN), "float16"),
    ):
        with T.Kernel(2, threads=256) as bx:
            As = T.alloc_shared((stages, BM, BK), "float16")
            Bs = T.alloc_shared((stages, BK, BN), "float16")
            Cs = T.alloc_shared((BM, BN), "float16")
            acc = T.alloc_fragment((BM, BN), "float32")
            full = T.alloc_barrier([128] * stages)
            empty = T.alloc_barrier([128] * stages)
            with T.ws(1):
                T.dec_max_nreg(24)
                n = T.alloc_var("int32", 0)
                for t in T.serial(bx, tiles, 2):
                    for k in range(K // BK):
                        T.mbarrier_wait_parity(empty[n % stages], (n // stages + 1) % 2)
                        T.tma_copy(A[t * BM, k * BK], As[n % stages, :, :], barrier=full[n % stages])
                        T.tma_copy(B[k * BK, 0], Bs[n % stages, :, :], barrier=full[n % stages])
                        T.mbarrier_arrive(full[n % stages])
                        n = n + 1
            with T.ws(0):
                T.inc_max_nreg(240)
                m = T.alloc_var("int32", 0)
                for t in T.serial(bx, tiles, 2):
                    T.clear(acc)
                    for _ in range(K // BK):
                        T.mbarrier_wait_parity(full[m % stages], m // stages % 2)
                        T.gemm(As[m % stages, :, :], Bs[m % stages, :, :], acc)
                        T.mbarrier_arrive(empty[m % stages])
                        m = m + 1
                    T.copy(acc, Cs)
                    T.copy(Cs, C[t * BM, 0])

    a, b = integers(1, (BM * tiles, K), "float16", 3), integers(2, (K, BN), "float16", 3)
    everywhere(kernel, [a, b], a.astype(float) @ b.astype(float), ("sm_90a",))
