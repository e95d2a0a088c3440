"""Tensors of no elements, loops of no trips, grids of no blocks."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import LaunchError

from .harness import everywhere


@pytest.mark.parametrize("stages", (0, 2))
def test_a_product_over_no_k_is_zero(stages):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(A: T.Tensor((64, 0), "float16"), B: T.Tensor((0, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(0, 32), num_stages=stages):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    empty = np.zeros((64, 0), np.float16)
    everywhere(kernel, [empty, empty.T.copy()], np.zeros((64, 64)), ("sm_80", "sm_90a"))


def test_a_grid_of_no_blocks_is_refused_when_it_is_called() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def fixed(B: T.Tensor((4,), "float32")):
        with T.Kernel(0, threads=32) as bx:
            B[bx] = 1

    @T.prim_func
    def sized(B: T.Tensor((n,), "float32")):
        with T.Kernel(n, threads=32) as bx:
            B[bx] = 1

    b = np.zeros(4, np.float32)
    for kernel, array in ((fixed, b), (sized, b[:0])):
        with pytest.raises(LaunchError, match=r"the grid is \(0,\)"):
            tw.compile(kernel, target="cpu")(array)
    assert not b.any()


def test_none_stands_for_a_tensor_that_is_not_touched() -> None:
    m = T.dynamic("m")

    @T.prim_func
    def kernel(A: T.Tensor((m,), "int32"), X: T.Tensor((2,), "int32"), B: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=32):
            T.copy(X, B)

    made = tw.compile(kernel, target="cpu")
    x, b = np.array([3, 5], np.int32), np.zeros(2, np.int32)
    made(None, x, b)
    assert b.tolist() == [3, 5]
    with pytest.raises(LaunchError, match="`X` is missing"):
        made(None, None, b)


def test_a_fill_whose_bounds_are_known_at_run_time() -> None:
    @T.prim_func
    def kernel(S: T.Tensor((2,), "int32"), X: T.Tensor((600,), "int32")):
        with T.Kernel(1, threads=64):
            a, b = T.alloc_var("int32"), T.alloc_var("int32")
            a = S[0]
            b = S[1]
            T.fill(X[a:b], 7)

    x = np.arange(600, dtype=np.int32)
    want = x.copy()
    want[5:590] = 7
    everywhere(kernel, [np.array([5, 590], np.int32)], want, ("sm_90a",), initial=[x])
    everywhere(kernel, [np.array([9, 9], np.int32)], x, ("sm_90a",), initial=[x])
