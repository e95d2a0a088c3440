"""Products whose shared operands are slices of larger tiles, at places known only at run time."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, instructions, integers
from tileworkbench.ir.instr import Wgmma


def product(M, N, K, parts, trans_a, trans_b, asynchronous, trips):
    step = K // parts
    gemm = T.wgmma_gemm if asynchronous else T.gemm

    @T.prim_func
    def kernel(
        A: T.Tensor((K, M) if trans_a else (M, K), "float16"),
        B: T.Tensor((N, K) if trans_b else (K, N), "float16"),
        P: T.Tensor((1,), "int32"),
        D: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((K, M) if trans_a else (M, K), "float16")
            b = T.alloc_shared((N, K) if trans_b else (K, N), "float16")
            acc = T.alloc_fragment((M, N), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(acc)
            for j in T.serial(parts if trips is None else P[0]):
                at = j * step
                left = a[at : at + step, :] if trans_a else a[:, at : at + step]
                right = b[:, at : at + step] if trans_b else b[at : at + step, :]
                gemm(left, right, acc, transpose_A=trans_a, transpose_B=trans_b)
            if asynchronous:
                T.wait_wgmma(0)
            T.copy(acc, D)

    return kernel


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("M", "N", "K", "parts", "trans_a", "trans_b", "trips"),
    [
        (64, 64, 64, 4, False, True, None),
        (64, 64, 256, 8, False, True, None),
        (128, 64, 64, 2, False, True, None),
        (64, 128, 64, 2, False, True, None),
        (64, 64, 128, 4, True, False, None),
        (64, 64, 128, 4, False, False, 3),
        (64, 96, 64, 4, True, True, 2),
    ],
)
def test_slices_along_k(M, N, K, parts, trans_a, trans_b, trips, asynchronous):
    kernel = product(M, N, K, parts, trans_a, trans_b, asynchronous, trips)
    a, b = integers(1, (M, K), "float16", 5), integers(2, (K, N), "float16", 5)
    seen = K if trips is None else K // parts * trips
    truth = a[:, :seen].astype(np.float64) @ b[:seen].astype(np.float64)
    given = [np.ascontiguousarray(a.T if trans_a else a), np.ascontiguousarray(b.T if trans_b else b)]
    targets = ("sm_90a",) if asynchronous else ("sm_80", "sm_90a")
    made = everywhere(kernel, [*given, np.array([trips or 0], np.int32)], truth, targets)
    assert instructions(made["sm_90a"], Wgmma), "the warpgroup instruction does it"


def test_slices_of_rows_of_stacked_operands():
    @T.prim_func
    def kernel(A: T.Tensor((256, 64), "float16"), B: T.Tensor((64, 64), "float16"), P: T.Tensor((2,), "int32"),
               D: T.Tensor((2, 64, 64), "float32")):  # fmt: skip
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((256, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            at = P[bx] * 64
            T.gemm(a[at : at + 64, :], b, acc, transpose_B=True, clear_accum=True)
            T.copy(acc, D[bx, 0, 0])

    a, b = integers(3, (256, 64), "float16", 5), integers(4, (64, 64), "float16", 5)
    rows = a.astype(np.float64).reshape(4, 64, 64)[[3, 1]]
    made = everywhere(kernel, [a, b, np.array([3, 1], np.int32)], rows @ b.astype(np.float64).T, ("sm_80", "sm_90a"))
    assert instructions(made["sm_90a"], Wgmma)
