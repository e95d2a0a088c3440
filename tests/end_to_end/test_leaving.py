"""T.thread_return, T.loop_break, T.mma_fill and T.mma_store, on every machine."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import NVIDIA, everywhere, integers
from tileworkbench.errors import LanguageError

N = 64


def test_a_block_that_has_nothing_to_do_returns() -> None:
    """What comes after the branch is a whole pipeline, with tiles of its own."""

    @T.prim_func
    def kernel(A: T.Tensor((3, N), "float32"), Out: T.Tensor((3, N), "float32")):
        with T.Kernel(3, threads=64) as bx:
            s = T.alloc_shared((N,), "float32")
            T.copy(A[bx, 0:N], s)
            if bx == 1:
                for i in T.Parallel(N):
                    Out[bx, i] = -1
                T.thread_return()
            c = T.alloc_fragment((N,), "float32")
            t = T.alloc_shared((N,), "float32")
            T.copy(s, c)
            for i in T.Parallel(N):
                t[i] = c[N - 1 - i] + 1
            T.copy(t, Out[bx, 0:N])

    a = integers(1, (3, N))
    want = a[:, ::-1] + 1
    want[1] = -1
    everywhere(kernel, [a], want)


def test_threads_return_one_after_the_other() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((N,), "int32"), n: T.Tensor((1,), "int32"), Out: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding()
            Out[tx] = 1
            if tx >= n[0]:
                if tx % 2 == 0:
                    T.thread_return()
                Out[tx] = 2
            else:
                Out[tx] = A[tx]
                if A[tx] < 0:
                    Out[tx] = 3
                    T.thread_return()
            Out[tx] = Out[tx] * 10

    a, t = integers(2, (N,), "int32"), np.arange(N)
    inside = np.where(a < 0, 3, a * 10)
    everywhere(kernel, [a, np.array([40], np.int32)], np.where(t < 40, inside, np.where(t % 2 == 0, 1, 20)))


def test_statements_behind_a_return_are_not_reached() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((N,), "int32"), Out: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding()
            Out[tx] = A[tx]
            T.thread_return()
            Out[tx] = 7

    a = integers(3, (N,), "int32")
    everywhere(kernel, [a], a)


def test_loops_end_by_name() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((N,), "int32"), Out: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            total = T.alloc_var("int32", init=0)
            for i in T.serial(N):
                if A[i] < 0:
                    T.loop_break()
                total += A[i]
            Out[0] = total

    a = np.arange(N, dtype=np.int32)
    a[20] = -1
    everywhere(kernel, [a], np.array([190]))


def test_a_return_from_a_loop_is_refused() -> None:
    with pytest.raises(LanguageError, match=r"T\.thread_return inside a loop"):

        @T.prim_func
        def kernel(Out: T.Tensor((N,), "int32")):
            with T.Kernel(1, threads=N):
                for i in T.serial(N):
                    Out[i] = 1
                    T.thread_return()


@pytest.mark.parametrize("to", ["tensor", "tile"])
def test_accumulators_are_stored_as_the_lanes_hold_them(to: str) -> None:
    """Two products of 16 × 8 side by side, of which each lane has 8 elements; two warps have a tile each."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 16, 16), "float16"), B: T.Tensor((16, 16), "float16"), C: T.Tensor((32, 24), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            lane, warp = tx % 32, tx // 32
            a = T.alloc_local((8,), "float16")
            b = T.alloc_local((8,), "float16")
            c = T.alloc_local((10,), "float32")
            s = T.alloc_shared((32, 24), "float32")
            for i in T.unroll(8):
                a[i] = A[warp, lane // 4 + i // 2 % 2 * 8, i // 4 * 8 + lane % 4 * 2 + i % 2]
                b[i] = B[i // 4 * 8 + lane // 4, i // 2 % 2 * 8 + lane % 4 * 2 + i % 2]
            T.mma_fill("float32", 8, c, 2)
            for i in T.unroll(2):
                T.ptx_mma(
                    "float32", "m16n8k16", "row", "col", "fp16", "fp16", "fp32", a, 0, b, i * 4, c, 2 + i * 4, False
                )
            if to == "tensor":
                T.mma_store("float32", 16, 16, T.access_ptr(C[warp * 16, 8], "w"), c, 2, 24)
            else:
                T.fill(s, 0)
                T.mma_store("float32", 16, 16, T.access_ptr(s[warp * 16, 8], "w"), c, 2, 24)
                T.copy(s, C)

    rng = np.random.default_rng(4)
    a, b = (rng.integers(-5, 6, shape).astype(np.float16) for shape in ((2, 16, 16), (16, 16)))
    want = np.zeros((32, 24))
    want[:, 8:] = (a.astype(np.float64) @ b.astype(np.float64).T).reshape(32, 16)
    initial = [np.zeros((32, 24), np.float32)] if to == "tensor" else None
    everywhere(kernel, [a, b], want, NVIDIA, initial=initial)
