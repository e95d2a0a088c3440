"""What reads outside a tensor give: 0, or the value that T.annotate_safe_value names, whatever moves the elements."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, integers, lowered
from tileworkbench.errors import TargetError


def padded(a, rows, cols, value, above=0, left=0):
    out = np.full((rows, cols), value, a.dtype)
    for i in range(rows):
        for j in range(cols):
            y, x = i - above, j - left
            if 0 <= y < a.shape[0] and 0 <= x < a.shape[1]:
                out[i, j] = a[y, x]
    return out


@pytest.mark.parametrize("value", [None, -99, 0])
@pytest.mark.parametrize("way", ["direct", "shared", "fragment", "elements", "single"])
def test_a_tile_that_hangs_over(way, value):
    @T.prim_func
    def kernel(A: T.Tensor((44, 40), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, 2, threads=64) as (bx, by):
            if value is not None:
                T.annotate_safe_value({A: value})
            if way == "direct":
                T.copy(A[by * 32 : by * 32 + 32, bx * 32 : bx * 32 + 32], B[by * 32, bx * 32])
            elif way in ("shared", "fragment"):
                alloc = T.alloc_shared if way == "shared" else T.alloc_fragment
                tile = alloc((32, 32), "float32")
                T.copy(A[by * 32, bx * 32], tile)
                T.copy(tile, B[by * 32, bx * 32])
            else:
                for i, j in T.Parallel(32, 32):
                    if way == "elements":
                        B[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j]
                    else:
                        T.copy(A[by * 32 + i, bx * 32 + j], B[by * 32 + i, bx * 32 + j])

    a = integers(1, (44, 40))
    everywhere(kernel, [a], padded(a, 64, 64, value or 0))


@pytest.mark.parametrize("stages", [0, 2])
def test_pipelined_loads_before_the_first_row(stages):
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((16, 64), "float16")
            T.annotate_safe_value({A: 10})
            for k in T.Pipelined(4, num_stages=stages):
                T.copy(A[k * 16 - 10, 0], tile)
                for i, j in T.Parallel(16, 64):
                    B[k * 16 + i, j] = tile[i, j] + 1

    a = integers(2, (64, 64), "float16")
    everywhere(kernel, [a], padded(a, 64, 64, 10, above=10) + 1)


def test_the_value_is_converted_with_the_copy():
    @T.prim_func
    def kernel(A: T.Tensor((5, 7), "float32"), B: T.Tensor((8, 8), "float16")):
        with T.Kernel(1, threads=32):
            T.annotate_safe_value({A: -99.5})
            T.copy(A[0:8, 0:8], B)

    a = integers(3, (5, 7))
    everywhere(kernel, [a], padded(a, 8, 8, -99.5).astype(np.float16))


def test_a_forced_engine_copy_with_another_value_is_refused():
    @T.prim_func
    def kernel(A: T.Tensor((60, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, 64), "float16")
            T.annotate_safe_value({A: 1})
            T.copy(A[0:64, 0:64], tile, prefer_instruction="tma")
            T.copy(tile, B)

    with pytest.raises(TargetError, match="safe value"):
        lowered(kernel, "sm_90a")
