"""Reducers: what all iterations of parallel loops combine into, on exact data; and their misuse, refused."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError
from tileworkbench.ir.node import walk
from tileworkbench.ir.stmt import For
from tileworkbench.ops.reduce import Reduce

from .harness import NVIDIA, everywhere


def integers(seed, shape):
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.int32)


def test_elements_named_by_serial_loops():
    @T.prim_func
    def kernel(A: T.Tensor((4, 96), "int32"), B: T.Tensor((4, 96), "int32"), C: T.Tensor((4, 4), "int32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_fragment((4, 96), "int32")
            b = T.alloc_fragment((4, 96), "int32")
            c = T.alloc_fragment((4, 4), "int32")
            T.copy(A, a)
            T.copy(B, b)
            dots = T.alloc_reducer((4, 4), "int32")
            T.reducer_init(dots)
            for i in T.serial(4):
                for j in T.serial(4):
                    for k in T.Parallel(96):
                        T.reducer_update(dots[i, j], a[i, k] * b[j, k])
            T.finalize_reducer(dots, c)
            T.copy(c, C)

    a, b = integers(1, (4, 96)), integers(2, (4, 96))
    everywhere(kernel, [a, b], a @ b.T, NVIDIA)


def test_several_elements_in_one_loop():
    @T.prim_func
    def kernel(A: T.Tensor((16, 40), "int32"), C: T.Tensor((3, 16), "int32")):
        with T.Kernel(1, threads=32):
            sums = T.alloc_reducer((3, 16), "int32")
            T.reducer_init(sums)
            for i, j in T.Parallel(16, 40):
                T.reducer_update(sums[0, i], A[i, j])
                T.reducer_update(sums[2, i], A[i, j] * A[i, j])
                T.reducer_update(sums[0, i], 1)
            T.finalize_reducer(sums)
            T.copy(sums, C)

    a = integers(3, (16, 40))
    everywhere(kernel, [a], np.stack([a.sum(1) + 40, np.zeros(16, int), (a * a).sum(1)]), NVIDIA)


def test_a_serial_loop_inside_and_indices_in_another_order():
    @T.prim_func
    def kernel(A: T.Tensor((8, 16, 6), "int32"), C: T.Tensor((16, 8), "int32")):
        with T.Kernel(1, threads=64):
            least = T.alloc_reducer((16, 8), "int32", op="min")
            T.reducer_init(least, 5)
            for i, j in T.Parallel(8, 16):
                for k in T.serial(6):
                    T.reducer_update(least[j, i], A[i, j, k])
            T.finalize_reducer(least)
            T.copy(least, C)

    a = integers(4, (8, 16, 6))
    everywhere(kernel, [a], np.minimum(a.min(2).T, 5), NVIDIA)


def test_finalised_in_one_branch_and_again_in_each_trip():
    @T.prim_func
    def kernel(A: T.Tensor((64, 3), "int32"), N: T.Tensor((2,), "int32"), C: T.Tensor((2,), "int32")):
        with T.Kernel(2, threads=64) as bx:
            got = T.alloc_fragment((1,), "int32")
            T.clear(got)
            for t in T.serial(3):
                acc = T.alloc_reducer((1,), "int32", op="bitxor")
                T.reducer_init(acc)
                if N[bx] > 0:
                    for i in T.Parallel(64):
                        T.reducer_update(acc[0], A[i, t])
                    T.finalize_reducer(acc, got)
            T.copy(got, C[bx : bx + 1])

    a = integers(5, (64, 3))
    everywhere(kernel, [a, np.array([1, 0], np.int32)], np.array([np.bitwise_xor.reduce(a[:, 2]), 0]), NVIDIA)


def test_threads_are_combined_once_after_the_loop():
    @T.prim_func
    def kernel(A: T.Tensor((16, 320), "int32"), B: T.Tensor((2, 16), "int32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((16, 32), "int32")
            sums = T.alloc_reducer((16,), "int32")
            most = T.alloc_reducer((16,), "int32", op="max")
            for half in T.serial(2):
                T.clear(sums)
                T.reducer_init(most, -3)
                for s in T.Pipelined(5, num_stages=2):
                    T.copy(A[0, half * 160 + s * 32], a)
                    for i, j in T.Parallel(16, 32):
                        sums[i] += a[i, j]
                    for i, j in T.Parallel(16, 32):
                        if j > 3:
                            T.reducer_update(most[i], a[i, j])
                T.finalize_reducer(sums)
                T.finalize_reducer(most)
                for i in T.Parallel(16):
                    B[half, i] = sums[i] * 100 + most[i]

    a = integers(6, (16, 320))
    parts = a.reshape(16, 2, 5, 32)
    want = parts.sum((2, 3)) * 100 + np.maximum(parts[..., 4:].max((2, 3)), -3)
    everywhere(kernel, [a], want.T, NVIDIA)
    loops = [n for n in walk(kernel.kernel.body) if isinstance(n, For)]
    assert [sum(isinstance(n, Reduce) for n in walk(loop.body)) for loop in loops] == [2, 0]


def test_a_part_of_a_result_is_not_read():
    with pytest.raises(LanguageError, match="illegal read of reducer `acc`"):

        @T.prim_func
        def kernel(A: T.Tensor((8, 4), "int32"), B: T.Tensor((8,), "int32")):
            with T.Kernel(1, threads=32):
                acc = T.alloc_reducer((8,), "int32")
                T.clear(acc)
                for t in T.serial(4):
                    for i in T.Parallel(8):
                        acc[i] += A[i, t]
                T.copy(acc, B)


def test_a_part_of_a_result_is_not_read_where_it_began_either():
    with pytest.raises(LanguageError, match="illegal read of reducer `acc`"):

        @T.prim_func
        def kernel(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
            with T.Kernel(1, threads=32):
                acc = T.alloc_reducer((8,), "int32")
                T.reducer_init(acc)
                for i in T.Parallel(8):
                    T.reducer_update(acc[i], A[i])
                for i in T.Parallel(8):
                    B[i] = acc[i]
                T.finalize_reducer(acc)


def misuse(case):
    def kernel(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            dtype = "float32" if case == "integer dtype" else "int32"
            acc = T.alloc_reducer((8,), dtype, op="bitor")
            if case != "before T.reducer_init":
                T.reducer_init(acc, T.cast(A[0], "int64") if case == "does not match" else None)
            if case == "double T.reducer_init":
                T.reducer_init(acc)
            if case == "outside any T.Parallel":
                T.reducer_update(acc[0], 1)
            for i in T.Parallel(8):
                if case == "another place":
                    T.reducer_update(acc[i // 2], A[i])
                else:
                    T.reducer_update(acc[i], A[i])
            if case == "not in the scope":
                for _ in T.serial(2):
                    T.finalize_reducer(acc)
            elif case != "never finalized":
                T.finalize_reducer(acc)
                T.copy(acc, B)

    return kernel


@pytest.mark.parametrize(
    "case",
    ["integer dtype", "before T.reducer_init", "double T.reducer_init", "outside any T.Parallel", "another place",
     "not in the scope", "does not match", "never finalized"],
)  # fmt: skip
def test_misuse_is_refused(case):
    with pytest.raises(LanguageError, match=case):
        T.prim_func(misuse(case))
