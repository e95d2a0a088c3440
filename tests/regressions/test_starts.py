"""Tensors that start elsewhere than at a multiple of 16 bytes, such as views into larger ones, and empty ones: a kernel
takes them, by wide accesses and copy engines where their places allow it and by narrower ones where not."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests import kernels
from tests.end_to_end.cases import integers

from .machines import Machine

SHIFTS = (1, 2, 4, 0)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_elements_of_views(machine: Machine, dtype: str) -> None:
    rng = np.random.default_rng(5)
    for n in (512, T.dynamic("n")):
        for staged in (True, False):
            func = kernels.add_2d(32, n, BM=16, BN=64, dtype=dtype, staged=staged)
            kernel = machine.load(func)
            a, b = integers(rng, (32, 512), dtype, 100), integers(rng, (32, 512), dtype, 100)
            for shift in machine.some(SHIFTS, 2):
                kernel.check([a, b], a + b, shift=shift, note=f"{dtype} {n} {staged} {shift}")


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_products_of_views(machine: Machine, trans_b: bool, late: bool) -> None:
    """Constant pitches alone make no wide copy: where the tensor starts matters too."""
    rng = np.random.default_rng(6)
    rows = T.dynamic("m") if late else 128
    kernel = machine.load(kernels.gemm(rows, 64, 96, BM=64, BN=64, BK=32, trans_b=trans_b, staged_out=True))
    a = integers(rng, (128, 96), "float16")
    b = integers(rng, (64, 96) if trans_b else (96, 64), "float16")
    truth = a.astype(np.float64) @ (b.T if trans_b else b).astype(np.float64)
    for shift in machine.some(SHIFTS, 2):
        kernel.check([a, b], truth.astype(np.float32), shift=shift, note=shift)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_atomic_sums_into_views(machine: Machine, dtype: str) -> None:
    @T.prim_func
    def sums(A: T.Tensor((64, 128), dtype), B: T.Tensor((64, 128), dtype)):
        with T.Kernel(2, threads=128) as bx:
            tile = T.alloc_shared((64, 64), dtype)
            T.copy(A[0, bx * 64], tile)
            T.atomic_add(B[0, bx * 64], tile)

    rng = np.random.default_rng(7)
    a, b = integers(rng, (64, 128), dtype, 100), integers(rng, (64, 128), dtype, 100)
    kernel = machine.load(sums, ("sm_80", "sm_90a"))
    for shift in machine.some(SHIFTS, 2):
        kernel.check([a], a + b, initial=[b], shift=shift, note=shift)


def test_rows_of_views(machine: Machine) -> None:
    """One run of bytes by the copy engine, and rows that a table names."""

    @T.prim_func
    def gather(A: T.Tensor((64, 128), "float16"), at: T.Tensor((32,), "int32"), B: T.Tensor((32, 128), "float16")):
        with T.Kernel(2, threads=64) as bx:
            tile = T.alloc_shared((16, 128), "float16")
            line = T.alloc_shared((128,), "float16")
            T.copy(A[bx, :], line)
            for i, j in T.Parallel(16, 128):
                tile[i, j] = A[at[bx * 16 + i], j]
            for i, j in T.Parallel(16, 128):
                B[bx * 16 + i, j] = tile[i, j] + line[j]

    rng = np.random.default_rng(8)
    a, at = integers(rng, (64, 128), "float16", 100), rng.integers(0, 64, 32).astype(np.int32)
    truth = (a[at].reshape(2, 16, 128) + a[:2, None]).reshape(32, 128)
    kernel = machine.load(gather)
    for shift in machine.some(SHIFTS, 2):
        kernel.check([a, at], truth, shift=shift, note=shift)


@pytest.mark.parametrize("width", [64, 0])
def test_products_over_nothing(machine: Machine, width: int) -> None:
    """Descriptors know no extent of 0, so that another variant takes empty tensors."""
    k, n = T.dynamic("k"), width or T.dynamic("n")
    kernel = machine.load(kernels.gemm(64, n, k, BM=64, BN=64, BK=32))
    for depth in (0, 40):
        a, b = np.ones((64, depth), np.float16), np.ones((depth, 64), np.float16)
        kernel.check([a, b], np.full((64, 64), depth, np.float32), note=depth)
