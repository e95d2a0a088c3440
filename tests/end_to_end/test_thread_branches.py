# mypy: ignore-errors
"""Branches on the thread index that read fragments: every thread of the branch sees the element that it names."""

from __future__ import annotations

import numpy as np

import tileworkbench.language as T

from .harness import everywhere, integers


def test_one_thread_stores_what_all_reduced():
    N = 8

    @T.prim_func
    def total(A: T.Tensor((N,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=128):
            seen = T.alloc_fragment((N,), "float32")
            T.copy(A, seen)
            acc = T.alloc_reducer((1,), "float32", op="sum")
            T.reducer_init(acc)
            for i in T.Parallel(N):
                T.reducer_update(acc[0], seen[i])
            result = T.alloc_fragment((1,), "float32")
            T.finalize_reducer(acc, result)
            if T.get_thread_binding() == 0:
                B[0] = result[0]

    a = integers(1, (N,))
    everywhere(total, [a], np.array([a.sum()]))


def test_threads_of_a_warp_take_the_elements_they_name():
    N, THREADS = 48, 64

    @T.prim_func
    def turned(A: T.Tensor((N,), "int32"), B: T.Tensor((2, THREADS), "int32")):
        with T.Kernel(1, threads=THREADS):
            tx = T.get_thread_binding()
            f = T.alloc_fragment((N,), "int32")
            T.copy(A, f)
            for trip in T.serial(2):
                if tx < N - 5:
                    B[trip, tx] = f[tx + 5] + trip
                else:
                    if tx >= N:
                        B[trip, tx] = -1
                    else:
                        B[trip, tx] = f[N - 1 - tx]
                for i in T.Parallel(N):
                    f[i] = f[i] * 2

    a = integers(2, (N,), "int32")
    tx = np.arange(THREADS)
    row = np.where(tx < N - 5, a[np.minimum(tx + 5, N - 1)], np.where(tx >= N, -1, a[np.clip(N - 1 - tx, 0, N - 1)]))
    second = np.where(tx >= N, -1, row * 2 + np.where(tx < N - 5, 1, 0))
    everywhere(turned, [a], np.stack([row, second]))


def test_a_block_s_value_rounded_to_a_narrow_type_in_a_branch():
    """The stored value is one number for the whole block, while the place differs by thread."""
    BLOCKS = 3

    @T.prim_func
    def narrow(B: T.Tensor((1, 64), "bfloat16")):
        with T.Kernel(BLOCKS, threads=64) as bx:
            tx = T.get_thread_binding()
            if tx < 1:
                B[bx, tx] = T.cast(bx + bx + 1, "bfloat16")

    wanted = np.full((1, 64), 7, "float32")
    wanted[0, 0] = 1
    everywhere(narrow, [], wanted, initial=[np.full((1, 64), 7, "float32").astype(narrow.kernel.params[0].dtype.numpy)])


def test_an_elected_thread_meets_nobody():
    """What only it does needs no meeting inside its branch."""

    @T.prim_func
    def elected(A: T.Tensor((64,), "int32"), B: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            S[tx] = A[tx]
            if T.shuffle_elect(0):
                S[3] = S[63] + 1
                B[0] = S[3] + S[40]
            B[1] = S[3]

    a = integers(4, (64,), "int32")
    everywhere(elected, [a], np.array([a[63] + 1 + a[40], a[63] + 1]))
