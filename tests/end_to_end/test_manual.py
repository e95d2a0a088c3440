"""Kernels that control the hardware themselves: barriers, warpgroups, tensor copies, asynchronous products."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests.kernels import ring_sum
from tileworkbench.errors import LanguageError, TargetError

from .harness import NVIDIA, everywhere, integers, lowered


def ws_gemm(M=128, N=128, K=160, BM=128, BN=128, BK=32, stages=2, branch=False, threads=256, regs=True):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            As = T.alloc_shared((stages, BM, BK), "float16")
            Bs = T.alloc_shared((stages, BK, BN), "float16")
            Cs = T.alloc_shared((BM, BN), "float16")
            acc = T.alloc_fragment((BM, BN), "float32")
            full = T.alloc_barrier([128] * stages)
            empty = T.alloc_barrier([128] * stages)
            with T.ws(1):
                if regs:
                    T.set_max_nreg(24, 0)
                for k in range(K // BK):
                    T.mbarrier_wait_parity(empty[k % stages], (k // stages % 2) ^ 1)
                    T.tma_copy(A[by * BM, k * BK], As[k % stages, :, :], barrier=full[k % stages])
                    T.tma_copy(B[k * BK, bx * BN], Bs[k % stages, :, :], barrier=full[k % stages])
                    T.mbarrier_arrive(full[k % stages])
            with T.ws(0):
                if regs:
                    T.set_max_nreg(240, 1)
                T.clear(acc)
                for k in range(K // BK):
                    T.mbarrier_wait_parity(full[k % stages], k // stages % 2)
                    T.wgmma_gemm(As[k % stages, :, :], Bs[k % stages, :, :], acc)
                    T.wait_wgmma(0)
                    T.mbarrier_arrive(empty[k % stages])
                T.copy(acc, Cs)
                T.copy(Cs, C[by * BM, bx * BN])

    return kernel


def test_ring_sum() -> None:
    a = integers(8, (6, 32), "float32", 100)
    everywhere(ring_sum(), [a], a.sum(0), ("sm_90a",))


def test_gemm_ws() -> None:
    a, b = integers(1, (128, 160), "float16", 4), integers(2, (160, 128), "float16", 4)
    k = everywhere(ws_gemm(), [a, b], a.astype(float) @ b.astype(float), ("sm_90a",))
    assert any("controls the hardware itself" in note for note in k["sm_90a"].notes)


def test_gemm_branch() -> None:
    BM = BN = 64
    BK = 32
    stages = 2
    K = 96

    @T.prim_func
    def kernel(A: T.Tensor((BM, K), "float16"), B: T.Tensor((K, BN), "float16"), C: T.Tensor((BM, BN), "float32")):
        with T.Kernel(1, threads=256):
            As = T.alloc_shared((stages, BM, BK), "float16")
            Bs = T.alloc_shared((stages, BK, BN), "float16")
            acc = T.alloc_fragment((BM, BN), "float32")
            full = T.alloc_barrier([1] * stages)
            empty = T.alloc_barrier([128] * stages)
            tx = T.get_thread_binding()
            T.clear(acc)
            if tx >= 128:
                for k in range(K // BK):
                    T.barrier_wait(empty[k % stages], (k // stages + 1) % 2)
                    if tx == 128:
                        T.mbarrier_expect_tx(full[k % stages], 0)
                    T.tma_copy(A[0, k * BK], As[k % stages, :, :], barrier=full[k % stages])
                    T.tma_copy(B[k * BK, 0], Bs[k % stages, :, :], barrier=full[k % stages])
                    if tx == 128:
                        T.barrier_arrive(full[k % stages])
            else:
                for k in range(K // BK):
                    T.barrier_wait(full[k % stages], k // stages % 2)
                    T.gemm(As[k % stages, :, :], Bs[k % stages, :, :], acc)
                    T.barrier_arrive(empty[k % stages])
            T.copy(acc, C)

    a, b = integers(1, (BM, K), "float16", 4), integers(2, (K, BN), "float16", 4)
    everywhere(kernel, [a, b], a.astype(float) @ b.astype(float), ("sm_90a",))


def test_async_copies() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((2, 64, 64), "float32")
            F = T.alloc_fragment((64, 64), "float32")
            T.clear(F)
            T.async_copy(A[0, 0:64, 0:64], S[0, :, :])
            for k in range(4):
                if k < 3:
                    T.async_copy(A[k + 1, 0:64, 0:64], S[(k + 1) % 2, :, :])
                    T.ptx_wait_group(1)
                else:
                    T.ptx_wait_group(0)
                for i, j in T.Parallel(64, 64):
                    F[i, j] += S[k % 2, i, j]
            T.copy(F, B)

    a = integers(1, (4, 64, 64))
    everywhere(kernel, [a], a.sum(0), NVIDIA)


def test_single_role_tma() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(4, threads=128) as bx:
            S = T.alloc_shared((64, 64), "float16")
            Out = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            T.tma_copy(A[bx, 0:64, 0:64], S, barrier=bar[0])
            if tx == 0:
                T.mbarrier_arrive(bar[0])
            T.mbarrier_wait_parity(bar[0], 0)
            for i, j in T.Parallel(64, 64):
                Out[i, j] = S[j, i] + S[i, j]
            T.fence_proxy_async()
            T.sync_threads()
            T.tma_copy(Out, B[bx, 0:64, 0:64])
            T.tma_store_arrive()
            T.tma_store_wait(0)

    a = integers(1, (4, 64, 64), "float16", 20)
    everywhere(kernel, [a], a + a.transpose(0, 2, 1), ("sm_90a",))


def test_named() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((256,), "float32")
            tx = T.get_thread_binding()
            with T.ws(0):
                S[tx] = A[tx]
                T.sync_threads(3, 128)
                B[tx] = S[127 - tx]
            with T.ws(1):
                S[tx] = A[tx] * 2
                T.sync_threads(4, 128)
                B[tx] = S[383 - tx]

    a = integers(1, (256,))
    everywhere(kernel, [a], np.concatenate([a[127::-1], 2 * a[:127:-1]]), NVIDIA)


def test_two_consumers() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((128, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((128, 64), "float32"),
        R: T.Tensor((128,), "float32"),
    ):
        with T.Kernel(1, threads=256):
            As = T.alloc_shared((128, 64), "float16")
            Bs = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            row = T.alloc_fragment((64,), "float32")
            T.copy(A, As)
            T.copy(B, Bs)
            with T.ws(0):
                T.clear(acc)
                T.gemm(As[0:64, :], Bs, acc)
                T.reduce_max(acc, row, dim=1)
                T.copy(acc, C[0:64, :])
                T.copy(row, R[0:64])
            with T.ws(1):
                T.clear(acc)
                T.gemm(As[64:128, :], Bs, acc)
                T.reduce_max(acc, row, dim=1)
                T.copy(acc, C[64:128, :])
                T.copy(row, R[64:128])

    a, b = integers(1, (128, 64), "float16", 4), integers(2, (64, 64), "float16", 4)
    c = a.astype(float) @ b.astype(float)
    everywhere(kernel, [a, b], [c, c.max(1)], NVIDIA)


def test_sm_80_has_no_barriers() -> None:
    with pytest.raises(TargetError) as error:
        lowered(ws_gemm(), "sm_80")
    assert error.value.loc is not None


def test_a_fragment_of_two_selections() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=256):
            F = T.alloc_fragment((64,), "float32")
            with T.ws(0):
                T.copy(A, F)
            with T.ws(1):
                T.fill(F, 1)
            T.copy(F, B)

    with pytest.raises(LanguageError, match="belong to different warpgroups") as error:
        lowered(kernel, "sm_90a")
    assert error.value.loc is not None
