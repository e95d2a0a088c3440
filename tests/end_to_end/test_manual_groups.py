"""Selections of warpgroups: branches on the thread index, selections in loops, registers handed over."""

from __future__ import annotations

import pytest

import tileworkbench.language as T
from tileworkbench.errors import ResourceError
from tileworkbench.ir.instr import SetRegs

from .harness import NVIDIA, built, everywhere, instructions, integers, lowered


def test_flash_ws() -> None:
    """one producer, two consumers, softmax-like reductions in groups, shared K ring"""
    BM = 64
    D = 64
    S = 128
    BN = 64
    st = 2

    @T.prim_func
    def kernel(
        Q: T.Tensor((2 * BM, D), "float16"),
        Kt: T.Tensor((S, D), "float16"),
        Out: T.Tensor((2 * BM, BN), "float32"),
        R: T.Tensor((2 * BM,), "float32"),
    ):
        with T.Kernel(1, threads=384):
            Qs = T.alloc_shared((2, BM, D), "float16")
            Ks = T.alloc_shared((st, BN, D), "float16")
            full = T.alloc_barrier([128] * st)
            empty = T.alloc_barrier([256] * st)
            qbar = T.alloc_barrier(128)
            s0 = T.alloc_fragment((BM, BN), "float32")
            s1 = T.alloc_fragment((BM, BN), "float32")
            r = T.alloc_fragment((BM,), "float32")
            tx = T.get_thread_binding()
            if tx < 128:
                T.dec_max_nreg(24)
                T.tma_copy(Q[0:BM, :], Qs[0, :, :], barrier=qbar)
                T.tma_copy(Q[BM : 2 * BM, :], Qs[1, :, :], barrier=qbar)
                T.mbarrier_arrive(qbar)
                for k in range(S // BN):
                    T.mbarrier_wait_parity(empty[k % st], (k // st + 1) % 2)
                    T.tma_copy(Kt[k * BN, 0], Ks[k % st, :, :], barrier=full[k % st])
                    T.mbarrier_arrive(full[k % st])
            elif tx < 256:
                T.inc_max_nreg(240)
                T.clear(s0)
                T.mbarrier_wait_parity(qbar, 0)
                for k in range(S // BN):
                    T.mbarrier_wait_parity(full[k % st], k // st % 2)
                    T.wgmma_gemm(Qs[0, :, :], Ks[k % st, :, :], s0, transpose_B=True)
                    T.wait_wgmma(0)
                    T.mbarrier_arrive(empty[k % st])
                T.reduce_max(s0, r, dim=1)
                T.copy(s0, Out[0:BM, :])
                T.copy(r, R[0:BM])
            else:
                T.inc_max_nreg(240)
                T.clear(s1)
                T.mbarrier_wait_parity(qbar, 0)
                for k in range(S // BN):
                    T.mbarrier_wait_parity(full[k % st], k // st % 2)
                    T.wgmma_gemm(Qs[1, :, :], Ks[k % st, :, :], s1, transpose_B=True)
                    T.wait_wgmma(0)
                    T.mbarrier_arrive(empty[k % st])
                T.reduce_max(s1, r, dim=1)
                T.copy(s1, Out[BM : 2 * BM, :])
                T.copy(r, R[BM : 2 * BM])

    q, kk = integers(1, (2 * BM, D), "float16", 3), integers(2, (S, D), "float16", 3)
    w = sum(q.astype(float) @ kk[i * BN : (i + 1) * BN].astype(float).T for i in range(S // BN))
    k = everywhere(kernel, [q, kk], [w, w.max(1)], ("sm_90a",))["sm_90a"]
    b = built(k, "sm_90a")
    assert b is None or (b.spills == 0 and not b.serialised)


def test_branch_on_tile_machine() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "float32")
            if tx < 128:
                T.copy(A, S)
                T.sync_threads(1, 256)
            else:
                T.sync_threads(1, 256)
                T.copy(S, B)

    a = integers(1, (64,))
    everywhere(kernel, [a], a, NVIDIA)


def test_ws_in_loop() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((64,), "float32")
            for k in T.serial(4):
                for i in T.Parallel(64):
                    S[i] = A[k, i]
                with T.ws(1):
                    for i in T.Parallel(64):
                        B[k, i] = S[63 - i]

    a = integers(1, (4, 64))
    everywhere(kernel, [a], a[:, ::-1], NVIDIA)


def test_registers_asked_for_once() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=384):
            tx = T.get_thread_binding()
            with T.ws(0):
                T.dec_max_nreg(24)
            with T.ws(1, 2):
                T.inc_max_nreg(240)
                A[tx - 128] = 1.0

    found = instructions(lowered(kernel, "sm_90a"), SetRegs)
    assert sorted((s.count, s.direction) for s in found) == [(24, "dec"), (240, "inc")]


def test_too_many_registers() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=384):
            with T.ws(0, 1, 2):
                T.inc_max_nreg(240)
            with T.ws(0):
                for i in T.Parallel(128):
                    A[i] = 1.0

    with pytest.raises(ResourceError, match="registers") as error:
        lowered(kernel, "sm_90a")
    assert error.value.loc is not None
