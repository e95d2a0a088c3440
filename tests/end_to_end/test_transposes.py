"""T.transpose of tiles and regions of any rank, and nests of T.Parallel, which are one loop."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T

from .harness import everywhere, integers


@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 4), (2, 3, 1), (2, 1, 3), (2, 2, 3, 4)])
def test_the_last_two_dimensions_change_places(shape):  # type: ignore[no-untyped-def]
    other = (*shape[:-2], shape[-1], shape[-2])

    @T.prim_func
    def kernel(A: T.Tensor(shape, "int32"), B: T.Tensor(other, "int32")):
        with T.Kernel(1, threads=32):
            T.transpose(A, B)

    a = integers(1, shape, "int32")
    everywhere(kernel, [a], np.swapaxes(a, -1, -2), ("sm_90a",))


def test_elements_beyond_the_destination_are_left_out() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((2, 3, 4), "int32"), B: T.Tensor((2, 4, 3), "int32")):
        with T.Kernel(1, threads=32):
            X = T.alloc_shared((2, 4, 3), "int32")
            T.fill(X, -9)
            T.transpose(A[0:2, 0:3, 0:4], X[0:2, 0:4, 2:5])
            T.copy(X, B)

    a = integers(1, (2, 3, 4), "int32")
    want = np.full((2, 4, 3), -9, np.int32)
    want[:, :, 2] = a[:, 0, :]
    everywhere(kernel, [a], want, ("sm_90a",))


def test_elements_beyond_the_source_are_zero() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((2, 3, 4), "int32"), B: T.Tensor((2, 4, 3), "int32")):
        with T.Kernel(1, threads=32):
            T.transpose(A[0:2, 1:4, 0:4], B)

    a = integers(1, (2, 3, 4), "int32") + 9
    want = np.zeros((2, 4, 3), np.int32)
    want[:, :, :2] = np.swapaxes(a[:, 1:, :], 1, 2)
    everywhere(kernel, [a], want, ("sm_90a",))


def test_nested_parallel_loops_are_one() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8, 6, 4), "int32"), B: T.Tensor((8, 24), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(8):
                for j in T.Parallel(6):
                    for k in T.Parallel(4):
                        B[i, j * 4 + k] = A[i, j, k] + 1

    a = integers(1, (8, 6, 4), "int32")
    everywhere(kernel, [a], (a + 1).reshape(8, 24), ("sm_90a",))
