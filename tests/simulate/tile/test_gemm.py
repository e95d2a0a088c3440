"""T.gemm: orders, dtypes, tails, no trips."""

import numpy as np
import pytest

import tileworkbench.language as T

from .calls import integers, returned


def matmul(M, N, K, dtype, accumulate, out, ta=False, tb=False, bm=32, bn=48, bk=16, stages=2):
    @T.prim_func
    def gemm(
        A: T.Tensor((K, M) if ta else (M, K), dtype),
        B: T.Tensor((N, K) if tb else (K, N), dtype),
        C: T.Tensor((M, N), out),
    ):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=128) as (bx, by):
            A_s = T.alloc_shared((bk, bm) if ta else (bm, bk), dtype)
            B_s = T.alloc_shared((bn, bk) if tb else (bk, bn), dtype)
            C_l = T.alloc_fragment((bm, bn), accumulate)
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                if ta:
                    T.copy(A[ko * bk, by * bm], A_s)
                else:
                    T.copy(A[by * bm, ko * bk], A_s)
                if tb:
                    T.copy(B[bx * bn, ko * bk], B_s)
                else:
                    T.copy(B[ko * bk, bx * bn], B_s)
                T.gemm(A_s, B_s, C_l, transpose_A=ta, transpose_B=tb)
            T.copy(C_l, C[by * bm, bx * bn])

    return gemm


@pytest.mark.parametrize("ta,tb", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("m,n,k", [(64, 96, 32), (50, 70, 37), (3, 200, 16)])
def test_gemm_orders(m, n, k, ta, tb):
    a, b = integers(m, (m, k), "float16"), integers(n, (k, n), "float16")
    a_given, b_given = (a.T.copy() if ta else a), (b.T.copy() if tb else b)
    got = returned(matmul(m, n, k, "float16", "float32", "float16", ta, tb), (m, n), "float16", a_given, b_given)
    assert np.array_equal(got.astype(int), a.astype(int) @ b.astype(int))


@pytest.mark.parametrize(
    "dtype,accumulate,high",
    [("bfloat16", "float32", 8), ("float32", "float32", 50), ("int8", "int32", 127), ("float64", "float64", 1000),
     ("float8_e4m3fn", "float32", 8), ("float8_e5m2", "float32", 4), ("float16", "float16", 2)],
)  # fmt: skip
def test_gemm_dtypes(dtype, accumulate, high):
    a, b = integers(1, (40, 64), dtype, high), integers(2, (64, 56), dtype, high)
    got = returned(matmul(40, 56, 64, dtype, accumulate, accumulate), (40, 56), accumulate, a, b)
    assert np.array_equal(got.astype(np.int64), a.astype(np.int64) @ b.astype(np.int64))


def test_gemm_of_reals_within_the_bound_of_float32_sums():
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((96, 200)).astype(np.float16), rng.standard_normal((200, 64)).astype(np.float16)
    got = returned(matmul(96, 64, 200, "float16", "float32", "float32"), (96, 64), "float32", a, b)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = 200 * 2.0**-23 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    assert (np.abs(got - exact) <= bound).all()


def test_zero_trips_leave_the_cleared_tile():
    K = T.dynamic("k")

    @T.prim_func
    def gemm(A: T.Tensor((16, K), "float16"), B: T.Tensor((K, 16), "float16"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=32):
            A_s = T.alloc_shared((16, 16), "float16")
            B_s = T.alloc_shared((16, 16), "float16")
            C_l = T.alloc_fragment((16, 16), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, 16), num_stages=3):
                T.copy(A[0, ko * 16], A_s)
                T.copy(B[ko * 16, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    for k in (0, 1, 15, 48):
        a, b = integers(k, (16, k), "float16"), integers(k + 1, (k, 16), "float16")
        assert np.array_equal(returned(gemm, (16, 16), "float32", a, b), a.astype(np.float32) @ b.astype(np.float32))
