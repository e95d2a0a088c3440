"""Lanes of one loop that depend on one another, or statements of one lane that do: the meaning is that of the loop."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, instructions, integers, lowered
from tileworkbench.ir.instr import AtomicMem, LoadMem, StoreMem
from tileworkbench.ir.node import walk


def test_a_parallel_loop_reads_what_it_stored_before():
    @T.prim_func
    def kernel(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32"), C: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((512,), "float32")
            for i in T.Parallel(512):
                S[i] = A[i] * 2
                C[i] = S[i] + 1
            T.copy(S, B)

    a = integers(1, (512,))
    everywhere(kernel, [a], [a * 2, a * 2 + 1])
    wide = [n.src.count for n in walk(lowered(kernel, "sm_90a").body) if isinstance(n, StoreMem)]
    assert max(wide) == 4, "each of the two statements is still done by wide accesses"


def test_a_parallel_loop_updates_a_tensor_twice():
    @T.prim_func
    def kernel(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(512):
                B[i] = A[i]
                B[i] = B[i] * 3
                B[i] += 5

    a = integers(2, (512,))
    everywhere(kernel, [a], a * 3 + 5)


def test_a_place_worked_out_in_the_same_iteration():
    @T.prim_func
    def kernel(A: T.Tensor((256,), "float32"), P: T.Tensor((256,), "int32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=64):
            at = T.alloc_fragment((256,), "int32")
            for i in T.Parallel(256):
                at[i] = 255 - P[i]
                B[i] = A[at[i]]

    a, i = integers(3, (256,)), np.random.default_rng(4).permutation(256).astype(np.int32)
    everywhere(kernel, [a, i], a[255 - i])


def test_a_private_place_worked_out_for_each_lane():
    @T.prim_func
    def kernel(A: T.Tensor((256,), "float32"), P: T.Tensor((256,), "int32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            at = T.alloc_local((1,), "int32")
            for v in T.vectorized(4):
                at[0] = P[tx * 4 + v]
                B[at[0]] = A[tx * 4 + v]

    a, i = integers(5, (256,)), np.random.default_rng(6).permutation(256).astype(np.int32)
    want = np.zeros(256, np.float32)
    want[i] = a
    everywhere(kernel, [a, i], want)


@pytest.mark.parametrize("space", ["global", "shared", "local"])
def test_lanes_that_add_to_one_element(space):
    @T.prim_func
    def kernel(A: T.Tensor((128, 4), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            row = T.get_thread_binding()
            if space == "global":
                B[row] = 0.0
                for k in T.vectorized(4):
                    B[row] = B[row] + A[row, k]
            elif space == "shared":
                S = T.alloc_shared((128,), "float32")
                S[row] = 0.0
                for k in T.vectorized(4):
                    S[row] = S[row] + A[row, k]
                B[row] = S[row]
            else:
                acc = T.alloc_local((1,), "float32")
                acc[0] = 0.0
                for k in T.vectorized(4):
                    acc[0] = acc[0] + A[row, k]
                B[row] = acc[0]

    a = integers(7, (128, 4))
    everywhere(kernel, [a], a.sum(1))


def test_lanes_that_hand_on_to_the_next():
    @T.prim_func
    def kernel(A: T.Tensor((64, 9), "int32"), B: T.Tensor((64, 9), "int32")):
        with T.Kernel(1, threads=64):
            row = T.get_thread_binding()
            B[row, 0] = A[row, 0]
            for k in T.vectorized(8):
                B[row, k + 1] = B[row, k] + A[row, k + 1]

    a = integers(8, (64, 9), "int32")
    everywhere(kernel, [a], np.cumsum(a, 1))


def test_independent_lanes_stay_wide():
    @T.prim_func
    def kernel(A: T.Tensor((64, 4), "float32"), B: T.Tensor((64, 4), "float32")):
        with T.Kernel(1, threads=64):
            row = T.get_thread_binding()
            for k in T.vectorized(4):
                B[row, k] = B[row, k] + A[row, k]

    a, b = integers(9, (64, 4)), integers(10, (64, 4))
    kernels = everywhere(kernel, [a], a + b, initial=[b])
    loads = [n.dst.count for n in walk(kernels["sm_90a"].body) if isinstance(n, LoadMem)]
    assert loads == [4, 4]


def test_lanes_that_carry_a_value_to_the_next():
    @T.prim_func
    def kernel(A: T.Tensor((64, 8), "float32"), B: T.Tensor((64, 8), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            total = T.alloc_local((1,), "float32")
            total[0] = 0
            for i in T.vectorized(8):
                before = total[0]
                B[tx, i] = before
                total[0] = before + A[tx, i]

    a = integers(3, (64, 8))
    everywhere(kernel, [a], np.cumsum(a, 1) - a)


def test_loads_are_not_moved_past_an_acquire():
    @T.prim_func
    def kernel(
        F: T.Tensor((64, 8), "int64"),
        A: T.Tensor((64,), "int32"),
        B: T.Tensor((64, 8), "int32"),
        C: T.Tensor((64, 8), "int64"),
    ):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            for i in T.vectorized(8):
                C[tx, i] = T.atomic_load(F[tx, i], memory_order="acquire")
                B[tx, i] = A[tx] + i

    flags, a = integers(4, (64, 8), "int64"), integers(5, (64,), "int32")
    made = everywhere(kernel, [flags, a], [a[:, None] + np.arange(8), flags], ("sm_80", "sm_90a"))
    order = [
        n.src.buffer.name if isinstance(n, LoadMem) else "F" for n in instructions(made["sm_90a"], LoadMem, AtomicMem)
    ]
    assert order.index("F") < order.index("A")
