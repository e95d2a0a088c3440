"""Thread counts of any size, hazards through loops with exits, and what needs all threads."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError

from .harness import everywhere, integers, lowered


@pytest.mark.parametrize("n", (1, 16, 100))
def test_odd_threads(n: int) -> None:

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((300,), "float32")):
        with T.Kernel(1, threads=n):
            tx = T.get_thread_binding()
            S = T.alloc_shared((n,), "float32")
            F = T.alloc_fragment((300,), "float32")
            S[tx] = A[tx] * 2
            B[tx] = S[n - 1 - tx]
            for i in T.Parallel(300):
                F[i] = S[i % n]
            T.copy(F, C)

    a = integers(1, (n,))
    everywhere(kernel, [a], [2 * a[::-1], 2 * a[np.arange(300) % n]])


def test_divergent_reduce() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            F = T.alloc_fragment((64,), "float32")
            R = T.alloc_fragment((1,), "float32")
            T.copy(A, F)
            if tx < 20:
                T.reduce_sum(F, R, dim=0)
                T.copy(R, B)

    with pytest.raises(LanguageError, match="only some threads") as error:
        lowered(kernel, "sm_80")
    assert error.value.loc is not None


def test_divergent_sync() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            if tx < 20:
                T.sync_threads()
            B[tx] = A[tx]

    with pytest.raises(LanguageError, match="only some threads") as error:
        lowered(kernel, "sm_80")
    assert error.value.loc is not None


def test_shared_loop() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "float32")
            S[tx] = A[tx]
            for _ in T.serial(6):
                x = T.alloc_var("float32")
                x = S[(tx + 1) % 64]
                S[tx] = x
            B[tx] = S[tx]

    a = integers(1, (64,))
    everywhere(kernel, [a], np.roll(a, -6))


def test_shared_break() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), N: T.Tensor((1,), "int32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "float32")
            S[tx] = A[tx]
            for k in T.serial(6):
                S[63 - tx] = A[tx] + k
                if N[0] == k:
                    break
                T.sync_threads()
                if N[0] == 100:
                    continue
            B[tx] = S[(tx + 32) % 64]

    a = integers(1, (64,))
    everywhere(kernel, [a, np.array([3], np.int32)], np.roll(a[::-1] + 3, -32))


def test_local_reduce_out() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 16), "float32"), B: T.Tensor((32, 16), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            acc = T.alloc_local((4, 4), "float32")
            v = T.alloc_local((4,), "float32")
            for i in T.unroll(4):
                for j in T.unroll(4):
                    acc[i, j] = 0
            for _ in T.serial(4):
                for i in T.vectorized(4):
                    v[i] = A[tx // 2, (tx % 2) * 4 + i]
                for i in T.unroll(4):
                    for j in T.unroll(4):
                        acc[i, j] += v[i] * v[j]
            for i in T.serial(4):
                if tx % 2 == 0:
                    for j in T.vectorized(4):
                        B[tx // 2, i * 4 + j] = acc[i, j]

    a = integers(1, (32, 16))
    x = a[:, :4]
    everywhere(kernel, [a], 4 * np.einsum("bi,bj->bij", x, x).reshape(32, 16))


def test_vars_in_parallel() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32")):
        with T.Kernel(4, threads=64) as bx:
            total = T.alloc_var("float32", 0)
            count = T.alloc_var("int32", init=3)
            for i in T.Parallel(128):
                x = A[bx, i]
                y = x * x
                B[bx, i] = y + count + total

    a = integers(1, (4, 128))
    everywhere(kernel, [a], a * a + 3)


@pytest.mark.parametrize("threads", [1, 16, 48, 100])
def test_blocks_that_are_no_whole_warps(threads: int) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32"), N: T.Tensor((3,), "int32")):
        with T.Kernel(1, threads=threads):
            s = T.alloc_shared((64,), "int32")
            f = T.alloc_fragment((64,), "int32")
            total = T.alloc_fragment((1,), "int32")
            T.atomic_add(N[0], 1)
            T.copy(A, s)
            T.copy(s, f)
            T.reduce_sum(f, total)
            T.atomic_add(N[1], s[3])
            T.atomic_add(N[2], total[0])
            for i in T.Parallel(64):
                B[i] = f[i] * 2

    a = integers(1, (64,), "int32")
    start = [np.zeros(64, np.int32), np.zeros(3, np.int32)]
    everywhere(kernel, [a], [a * 2, threads * np.array([1, a[3], a.sum()])], initial=start)


def test_one_thread_changes_memory_step_by_step() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1):
            B[0] = A[0]
            for i in T.serial(7):
                B[i + 1] = B[i] + A[i + 1]
                B[0] += 1

    a = integers(2, (8,), "int32")
    b = [int(a[0])] + [0] * 7
    for i in range(7):
        b[i + 1] = b[i] + int(a[i + 1])
        b[0] += 1
    everywhere(kernel, [a], np.array(b))
