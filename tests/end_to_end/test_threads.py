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
