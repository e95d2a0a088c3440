"""Barriers under the names of their instructions, and intrinsics by TVM's names."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import LanguageError, SimulationError, TargetError
from tileworkbench.ir.instr import CopyAsync, CopyAsyncArrive
from tileworkbench.simulate import thread
from tileworkbench.target import Target

from .harness import ALL, NVIDIA, everywhere, instructions, integers, lowered


def test_barriers_by_the_names_of_their_instructions() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(4, threads=128) as bx:
            S = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            if tx == 0:
                T.ptx_init_barrier_thread_count(bar[0], 1)
                T.ptx_fence_barrier_init()
            T.tma_copy(A[bx, 0:64, 0:64], S, barrier=bar[0])
            if tx == 0:
                T.ptx_arrive_barrier(bar[0])
            T.ptx_wait_barrier(bar[0])
            for i, j in T.Parallel(64, 64):
                B[bx, i, j] = S[j, i] + S[i, j]

    a = integers(1, (4, 64, 64), "float16", 20)
    everywhere(kernel, [a], a + a.transpose(0, 2, 1), ("sm_90a",))


def test_expected_bytes() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((128,), "int32")
            bar = T.alloc_barrier([128, 1])
            tx = T.get_thread_binding()
            S[tx] = A[tx]
            T.ptx_arrive_barrier_expect_tx(bar[0], 0)
            T.ptx_wait_barrier(bar[0])
            B[tx] = S[127 - tx]

    a = integers(2, (128,), "int32")
    everywhere(kernel, [a], [a[::-1]], ("sm_90a",))


def test_the_whole_grid() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "int32"), W: T.Tensor((4, 64), "int32"), B: T.Tensor((4, 64), "int32")):
        with T.Kernel(4, threads=64) as b:
            tx = T.get_thread_binding()
            W[b, tx] = A[b, tx] * 2
            T.sync_global()
            B[b, tx] = W[3 - b, tx]

    a = integers(3, (4, 64), "int32")
    everywhere(kernel, [a], [a * 2, a[::-1] * 2], NVIDIA)


def held(arrives_first: bool = False):
    """Half of the threads bring tiles by cp.async, the other half sums them; producers arrive themselves."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 128, 4), "float32"), B: T.Tensor((128, 4), "float32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((2, 128, 4), "float32")
            full = T.alloc_barrier([128] * 2)
            free = T.alloc_barrier([128] * 2)
            tx = T.get_thread_binding()
            if tx < 128:
                for k in T.serial(4):
                    T.mbarrier_wait_parity(free[k % 2], (k // 2 + 1) % 2)
                    T.ptx_cp_async(T.access_ptr(S[k % 2, tx, 0], "w", 4), T.access_ptr(A[k, tx, 0], "r", 4), 4)
                    if arrives_first:
                        T.ptx_arrive_barrier(full[k % 2])
                        T.ptx_cp_async_barrier(full[k % 2])
                    else:
                        T.ptx_cp_async_barrier(full[k % 2])
                        T.ptx_arrive_barrier(full[k % 2])
            else:
                acc = T.alloc_local((4,), "float32")
                T.clear(acc)
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full[k % 2], k // 2 % 2)
                    for c in T.unroll(4):
                        acc[c] += S[k % 2, 255 - tx, c]
                    T.ptx_arrive_barrier(free[k % 2])
                for c in T.unroll(4):
                    B[tx - 128, c] = acc[c]

    return kernel


def test_copies_hold_a_phase_back() -> None:
    a = integers(6, (4, 128, 4))
    kernel = everywhere(held(), [a], a.sum(0)[::-1], ("sm_90a",))["sm_90a"]
    assert len(instructions(kernel, CopyAsync)) == 1
    assert [s.noinc for s in instructions(kernel, CopyAsyncArrive)] == [False]
    assert "cp.async.mbarrier.arrive.shared.b64" in emit(kernel, Target.of("sm_90a")).text


def test_a_phase_is_not_held_back_after_its_arrivals() -> None:
    """The consumer may pass before the copies have landed: the thread machine finds the race."""
    kernel, a = lowered(held(True), "sm_90a"), integers(6, (4, 128, 4))
    with pytest.raises(SimulationError, match="not ordered after the write by CopyAsync"):
        thread.run(kernel, [a, np.zeros((128, 4), np.float32)], schedule="eager", target=Target.of("sm_90a"))


class Op:
    """As TVM's operators tell their name."""

    name = "tirx.popcount"


def test_intrinsics_by_name() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), N: T.Tensor((64,), "int32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            T.evaluate(T.call_intrin("handle", "tl.sync_warp"))
            x = T.call_intrin("float32", "tirx.fabs", A[tx])
            B[tx] = T.call_intrin("float32", "tirx.floor", x / 4.0) + T.call_intrin("int32", Op, N[tx])

    a, i = integers(4, (64,)), np.arange(64, dtype=np.int32)
    ones = np.array([bin(int(n)).count("1") for n in i])
    everywhere(kernel, [a, i], [np.floor(np.abs(a) / 4) + ones], ALL)


def test_what_has_no_plain_meaning_says_so() -> None:
    with pytest.raises(TargetError, match="which nothing here can make ready or wait for"):
        _ = T.create_barriers


def test_a_barrier_is_made_ready_once() -> None:
    with pytest.raises(LanguageError, match="after its first use"):

        @T.prim_func
        def kernel(A: T.Tensor((64,), "int32")):
            with T.Kernel(1, threads=64):
                bar = T.alloc_barrier(64)
                T.ptx_arrive_barrier(bar[0])
                T.ptx_init_barrier_thread_count(bar[0], 64)
                A[0] = 1


def test_numbers_of_barriers_may_be_constants_of_a_type() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((128,), "int32")
            tx = T.get_thread_binding()
            number = T.int32(3)
            S[tx] = A[tx]
            T.sync_threads(number, T.int32(128))
            B[tx] = S[127 - tx]

    a = integers(5, (128,), "int32")
    everywhere(kernel, [a], [a[::-1]], NVIDIA)
