"""Kernels that read from global memory what they have written there."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import SimulationError, TargetError
from tileworkbench.ir.instr import TmaLoad, TmaStore, WaitGroup

from .harness import everywhere, instructions, integers, lowered

TARGETS = ("sm_80", "sm_90a")


def doubled_first(how=None):
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 128), "float16"),
        B: T.Tensor((128, 64), "float16"),
        W: T.Tensor((64, 128), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            for i, j in T.Parallel(64, 128):
                W[i, j] = A[i, j] + A[i, j]
            T.sync_threads()
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(W[:, k * 32 : (k + 1) * 32], a, prefer_instruction=how)
                T.copy(B[k * 32 : (k + 1) * 32, :], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return kernel


def test_a_loop_that_loads_what_was_stored_before_it():
    a, b = integers(1, (64, 128), "float16", 3), integers(2, (128, 64), "float16", 3)
    made = everywhere(doubled_first(), [a, b], [2 * a, 2.0 * a.astype(np.float64) @ b.astype(np.float64)], TARGETS)
    assert {load.map for load in instructions(made["sm_90a"], TmaLoad)} == {"B_map"}


def test_the_copy_engine_is_not_asked_for_it():
    with pytest.raises(TargetError, match="reads `W`, which the kernel writes before") as caught:
        tw.compile(doubled_first("tma"), target="sm_90a")
    assert caught.value.loc is not None and "T.copy(W" in caught.value.loc.source_line()


@pytest.mark.parametrize("stages", [0, 2, 3])
def test_trips_that_read_what_the_trip_before_wrote(stages):
    @T.prim_func
    def kernel(A: T.Tensor((128,), "int32"), X: T.Tensor((9, 128), "int32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((1, 128), "int32")
            for i in T.Parallel(128):
                X[0, i] = A[i]
            T.sync_threads()
            for k in T.Pipelined(8, num_stages=stages):
                T.copy(X[k : k + 1, :], tile)
                for i in T.Parallel(128):
                    X[k + 1, i] = tile[0, 127 - i] * 2 + k
                T.sync_threads()

    a = integers(3, (128,), "int32", 9)
    rows = [a]
    for k in range(8):
        rows.append(rows[-1][::-1] * 2 + k)
    everywhere(kernel, [a], np.array(rows), TARGETS)


def test_tiles_that_are_changed_in_place_are_still_loaded_ahead():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "int32"), X: T.Tensor((8 * 32, 64), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((32, 64), "float16")
            made = T.alloc_fragment((32, 64), "float16")
            for k in T.Pipelined(8, num_stages=2):
                T.copy(X[k * 32 : (k + 1) * 32, :], tile)
                for i, j in T.Parallel(32, 64):
                    made[i, j] = tile[i, j] + T.cast(A[k], "float16")
                T.copy(made, X[k * 32 : (k + 1) * 32, :])

    a, x = integers(4, (8,), "int32", 5), integers(5, (256, 64), "float16", 20)
    everywhere(kernel, [a], x + np.repeat(a, 32)[:, None], TARGETS, initial=[x])
    assert instructions(lowered(kernel, "sm_90a"), TmaLoad)


def test_a_store_that_does_not_wait_for_the_load_is_found():
    @T.prim_func
    def kernel(X: T.Tensor((32, 64), "float16"), Y: T.Tensor((32, 64), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((32, 64), "float16")
            bar = T.alloc_barrier(32)
            tx = T.get_thread_binding()
            if tx < 32:
                T.tma_copy(X, tile, barrier=bar[0])
                T.barrier_arrive(bar[0])
            T.sync_threads()  # the load is under way then, not over
            for i, j in T.Parallel(32, 64):
                X[i, j] = 0
            T.mbarrier_wait_parity(bar[0], 0)
            T.copy(tile, Y)

    x = integers(6, (32, 64), "float16")
    with pytest.raises(SimulationError, match=r"write of X.* is not ordered after the read by TmaLoad"):
        tw.simulate(kernel, x, np.zeros_like(x), level="thread", target="sm_90a")


def test_a_stored_tile_is_read_back():
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), W: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            T.copy(A, a)
            T.copy(a, W)
            T.sync_threads()
            T.copy(W, b)
            for i, j in T.Parallel(64, 64):
                C[i, j] = b[j, i]

    a = integers(7, (64, 64), "float16")
    made = everywhere(kernel, [a], [a, a.T], TARGETS)
    assert [w.reads_only for w in instructions(made["sm_90a"], WaitGroup) if w.engine_of == "bulk"] == [False]


def test_a_tensor_that_one_statement_touches_is_not_waited_for():
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), W: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            T.copy(A, a)
            T.copy(a, W)

    a = integers(8, (64, 64), "float16")
    made = everywhere(kernel, [a], a, TARGETS)
    assert [w.reads_only for w in instructions(made["sm_90a"], WaitGroup) if w.engine_of == "bulk"] == [True]


def test_a_tile_over_what_was_stored_before():
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), W: T.Tensor((96, 64), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            T.copy(A, a)
            for i, j in T.Parallel(96, 64):
                W[i, j] = 1
            T.sync_threads()
            T.copy(a, W[16:80, :])

    a, want = integers(9, (64, 64), "float16"), np.ones((96, 64))
    want[16:80] = a
    everywhere(kernel, [a], want, TARGETS)


def test_stores_of_a_loop_stay_with_the_copy_engine():
    @T.prim_func
    def kernel(A: T.Tensor((256, 64), "float16"), W: T.Tensor((256, 64), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            for k in T.serial(4):
                place = (k * 3) % 4
                T.copy(A[k * 64, 0], a)
                T.copy(a, W[place * 64, 0])

    a = integers(10, (256, 64), "float16")
    made = everywhere(kernel, [a], a.reshape(4, 64, 64)[[0, 3, 2, 1]].reshape(256, 64), TARGETS)
    assert instructions(made["sm_90a"], TmaStore)
