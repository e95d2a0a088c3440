"""T.Parallel whose extents are known only at run time."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, integers


@pytest.mark.parametrize("n", [0, 1, 13, 256, 600])
def test_a_scalar_says_how_many(n):
    @T.prim_func
    def kernel(A: T.Tensor((512,), "float32"), n: T.Tensor((1,), "int32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=96):
            for i in T.Parallel(512):
                B[i] = 0.0
            T.sync_threads()  # the loops share the elements out differently
            span = T.min(n[0], 512)
            for i in T.Parallel(span):
                B[i] = A[i] - 1.0

    a, clip = integers(1, (512,)), min(n, 512)
    everywhere(kernel, [a, np.array([n], np.int32)], np.where(np.arange(512) < clip, a - 1, 0))


@pytest.mark.parametrize(("m", "n"), [(3, 5), (0, 4), (17, 300), (40, 1)])
def test_some_of_several_extents(m, n):
    @T.prim_func
    def kernel(A: T.Tensor((40, 4, 300), "int32"), S: T.Tensor((2,), "int32"), B: T.Tensor((40, 4, 300), "int32")):
        with T.Kernel(1, threads=128):
            for i, j, k in T.Parallel(S[0], 4, S[1]):
                B[i, j, k] = A[i, j, k] + i + k

    a = integers(2, (40, 4, 300), "int32")
    i, k = np.arange(40)[:, None, None], np.arange(300)
    want = np.where((i < m) & (k < n), a + i + k, -1)
    everywhere(kernel, [a, np.array([m, n], np.int32)], want, initial=[np.full_like(a, -1)])


def test_each_block_its_own_rows_of_a_shared_tile():
    @T.prim_func
    def kernel(A: T.Tensor((3, 64, 8), "float32"), L: T.Tensor((3,), "int32"), B: T.Tensor((3, 64, 8), "float32")):
        with T.Kernel(3, threads=64) as b:
            tile = T.alloc_shared((64, 8), "float32")
            T.clear(tile)
            for i, j in T.Parallel(L[b], 8):
                tile[i, j] = A[b, i, j] * 2
            T.copy(tile, B[b, 0, 0])

    a, lengths = integers(3, (3, 64, 8)), np.array([0, 64, 21], np.int32)
    want = np.where(np.arange(64)[None, :, None] < lengths[:, None, None], 2 * a, 0)
    everywhere(kernel, [a, lengths], want)
