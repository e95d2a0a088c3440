"""Branches and loops whose way depends on memory, threads or blocks."""

from __future__ import annotations

import numpy as np

import tileworkbench.language as T
from tests.kernels import collatz, collatz_steps, even_sum, even_sums

from .harness import everywhere, integers


def test_collatz() -> None:
    a = np.arange(1, 65, dtype=np.int32)
    everywhere(collatz(), [a], np.array([collatz_steps(int(n)) for n in a], np.int32))


def test_breaks() -> None:
    a = (integers(6, (4, 10), "int32", 20) + 12).astype(np.int32)
    everywhere(even_sums(4, 10), [a], np.array([even_sum(row) for row in a], np.int32))


def test_parallel_in_if() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=64) as bx:
            S = T.alloc_shared((64,), "float32")
            T.copy(A[bx, 0:64], S)
            if bx % 2 == 0:
                for i in T.Parallel(64):
                    S[i] = S[i] * 2
            else:
                for i in T.Parallel(64):
                    S[i] = A[bx, 63 - i]
            T.copy(S, B[bx, 0:64])

    a = integers(6, (4, 64))
    want = a.copy()
    want[0::2] *= 2
    want[1::2] = a[1::2, ::-1]
    everywhere(kernel, [a], want)


def test_runtime_bounds() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "float32"), N: T.Tensor((4,), "int32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=64) as bx:
            F = T.alloc_fragment((64,), "float32")
            T.clear(F)
            for k in T.serial(N[bx]):
                for i in T.Parallel(64):
                    F[i] += A[k, i]
            T.copy(F, B[bx, 0:64])

    a = integers(6, (4, 64))
    n = np.array([0, 1, 4, 2], np.int32)
    everywhere(kernel, [a, n], np.stack([a[:c].sum(0) for c in n]))


def test_runtime_while_shared() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 16), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=64) as bx:
            S = T.alloc_shared((16,), "int32")
            i = T.alloc_var("int32", 0)
            T.copy(A[bx, 0:16], S)
            while S[i] != 0:
                i = S[i]
            B[bx] = i

    a = np.zeros((4, 16), np.int32)
    for b in range(4):
        p = np.random.default_rng(b).permutation(np.arange(1, 16))[: b * 3 + 1]
        cur = 0
        for q in p:
            a[b, cur] = q
            cur = q
    want = []
    for b in range(4):
        i = 0
        while a[b, i]:
            i = a[b, i]
        want.append(i)
    everywhere(kernel, [a], np.array(want, np.int32))


def test_anyall() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 16), "int32"), B: T.Tensor((4, 64), "int32")):
        with T.Kernel(4, threads=64) as bx:
            S = T.alloc_shared((1, 16), "int32")
            T.copy(A[bx : bx + 1, 0:16], S)
            if T.any_of(S[0, :]):
                for i in T.Parallel(64):
                    B[bx, i] = 1
            else:
                for i in T.Parallel(64):
                    B[bx, i] = 0
            if T.all_of(S[0, :]):
                for i in T.Parallel(64):
                    B[bx, i] = 2

    a = np.zeros((4, 16), np.int32)
    a[1, 3] = 1
    a[2] = 1
    everywhere(kernel, [a], np.repeat(np.array([0, 1, 2, 0])[:, None], 64, 1))


def test_variables_without_a_value_start_at_zero() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 4), "int32"), B: T.Tensor((64, 2), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            total = T.alloc_var("int32")
            i = T.alloc_var("int32")
            while i < 4:
                seen = T.alloc_var("int32")
                seen += 1
                total += A[tx, i] * seen
                i += 1
            B[tx, 0] = total
            B[tx, 1] = i

    a = integers(9, (64, 4), "int32")
    everywhere(kernel, [a], np.stack([(a * np.arange(1, 5)).sum(1), np.full(64, 4)], 1))
