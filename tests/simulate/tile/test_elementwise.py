"""T.Parallel and T.copy: index maps, tails, branches and loops between elements."""

import numpy as np
import pytest

import tileworkbench.language as T

from .calls import call, numpy_dtype, returned


def add_2d(M, N, bm, bn, dtype):
    @T.prim_func
    def add(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=128) as (bx, by):
            A_s = T.alloc_shared((bm, bn), dtype)
            B_s = T.alloc_shared((bm, bn), dtype)
            C_l = T.alloc_fragment((bm, bn), dtype)
            T.copy(A[by * bm, bx * bn], A_s)
            T.copy(B[by * bm, bx * bn], B_s)
            for i, j in T.Parallel(bm, bn):
                C_l[i, j] = A_s[i, j] + B_s[i, j]
            T.copy(C_l, C[by * bm, bx * bn])

    return add


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("m,n", [(64, 96), (65, 33), (1, 7), (31, 128)])
def test_add_2d(m, n, dtype):
    rng = np.random.default_rng(m)
    a, b = rng.standard_normal((2, m, n)).astype(numpy_dtype(dtype))
    got = returned(add_2d(m, n, 32, 32, dtype), (m, n), dtype, a, b)
    assert np.array_equal(got, a + b)


def test_dynamic_rows():
    M = T.dynamic("m")

    @T.prim_func
    def scale(A: T.Tensor((M, 40), "float32"), B: T.Tensor((M, 40), "float32")):
        with T.Kernel(T.ceildiv(M, 16), threads=64) as bx:
            for i, j in T.Parallel(16, 40):
                if bx * 16 + i < M:
                    B[bx * 16 + i, j] = A[bx * 16 + i, j] * 2.0

    for m in (1, 16, 37):
        a = np.random.default_rng(m).standard_normal((m, 40)).astype(np.float32)
        assert np.array_equal(returned(scale, (m, 40), "float32", a), a * 2)


def test_reverse_shift_transpose_and_gather():
    @T.prim_func
    def kernel(
        A: T.Tensor((8, 8), "int32"),
        I: T.Tensor((8,), "int32"),  # noqa: E741
        R: T.Tensor((8, 8), "int32"),
        S: T.Tensor((8, 8), "int32"),
        X: T.Tensor((8, 8), "int32"),
        G: T.Tensor((8, 8), "int32"),
        D: T.Tensor((8,), "int32"),
    ):
        with T.Kernel(1, threads=32):
            S_s = T.alloc_shared((8, 8), "int32")
            T.copy(A, S_s)
            for i, j in T.Parallel(8, 8):
                R[i, j] = S_s[7 - i, j]
            for i, j in T.Parallel(8, 8):
                S[i, j] = S_s[(i + 3) % 8, j // 2 + j % 2]
            for i, j in T.Parallel(8, 8):
                X[j, i] = S_s[i, j]
            for i, j in T.Parallel(8, 8):
                G[i, j] = S_s[I[i], j]
            for i in T.Parallel(8):
                D[i] = S_s[i, i]

    a = np.arange(64, dtype=np.int32).reshape(8, 8)
    index = np.array([3, 3, 0, 7, 1, 2, 5, 6], np.int32)
    outs = [np.full((8, 8), -1, np.int32) for _ in range(4)] + [np.full(8, -1, np.int32)]
    call(kernel, a, index, *outs)
    rows, columns = (np.arange(8) + 3) % 8, np.arange(8) // 2 + np.arange(8) % 2
    wanted = [a[::-1], a[rows][:, columns], a.T, a[index], a.diagonal()]
    for got, want in zip(outs, wanted, strict=True):
        assert np.array_equal(got, want)


def test_negative_floor_division_and_wraparound():
    @T.prim_func
    def kernel(
        A: T.Tensor((19,), "int32"),
        Q: T.Tensor((19,), "int32"),
        R: T.Tensor((19,), "int32"),
        W: T.Tensor((19,), "int8"),
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(19):
                Q[i] = A[i] // 4
                R[i] = A[i] % 4
                W[i] = T.cast(A[i] * 50, "int8")

    a = np.arange(-9, 10, dtype=np.int32)
    q, r, w = np.zeros(19, np.int32), np.zeros(19, np.int32), np.zeros(19, np.int8)
    call(kernel, a, q, r, w)
    assert q.tolist() == [x // 4 for x in range(-9, 10)] and r.tolist() == [x % 4 for x in range(-9, 10)]
    assert w.tolist() == [((x * 50 + 128) % 256) - 128 for x in range(-9, 10)]


def test_serial_loop_and_branch_inside_parallel():
    """Trip counts and branches that differ between elements."""

    @T.prim_func
    def kernel(A: T.Tensor((20,), "int32"), B: T.Tensor((20,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(10):
                total = T.alloc_var("int32", 0)
                for k in T.serial(A[bx * 10 + i]):
                    if k % 3 == 1:
                        total = total + k
                    else:
                        total = total - 1
                B[bx * 10 + i] = total

    a = np.random.default_rng(3).integers(0, 12, 20).astype(np.int32)
    got = returned(kernel, (20,), "int32", a)
    assert got.tolist() == [sum(k if k % 3 == 1 else -1 for k in range(n)) for n in a]
