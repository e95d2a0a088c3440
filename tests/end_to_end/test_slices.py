"""Operands of products that start inside a tile: at runs of 16 bytes by matrix moves, anywhere else by elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, instructions, integers
from tests.end_to_end.test_sparse import operands
from tileworkbench.ir.instr import LdMatrix

TARGETS = ("sm_80",)


def dense(start: int) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 48), "float16"), B: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=64) as _:
            left = T.alloc_shared((32, 48), "float16")
            right = T.alloc_shared((32, 32), "float16")
            acc = T.alloc_fragment((32, 32), "float32")
            T.copy(A, left)
            T.copy(B, right)
            T.gemm(left[:, start : start + 32], right, acc, clear_accum=True)
            T.copy(acc, C)

    return kernel


@pytest.mark.parametrize(("start", "moves"), [(8, 2), (1, 1), (2, 1), (4, 1)])
def test_columns_of_a_dense_operand(start: int, moves: int) -> None:
    a, b = integers(0, (32, 48), "float16", 4), integers(1, (32, 32), "float16", 4)
    truth = a[:, start : start + 32].astype(float) @ b.astype(float)
    made = everywhere(dense(start), [a, b], truth, TARGETS)
    assert len(instructions(made["sm_80"], LdMatrix)) == moves  # those of A, and those of B


def test_columns_of_metadata() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((32, 16), "float16"),
        E: T.Tensor((32, 8), "int8"),
        B: T.Tensor((32, 16), "float16"),
        C: T.Tensor((32, 16), "float32"),
    ):
        with T.Kernel(1, threads=64) as _:
            left = T.alloc_shared((32, 16), "float16")
            places = T.alloc_shared((32, 8), "int8")
            right = T.alloc_shared((32, 16), "float16")
            acc = T.alloc_fragment((32, 16), "float32")
            T.copy(A, left)
            T.copy(E, places)
            T.copy(B, right)
            T.gemm_sp(left, places[:, 3:7], right, acc, clear_accum=True)
            T.copy(acc, C)

    a, e, b, truth = operands(32, 16, 32, "float16", "int8")
    wide = np.zeros((32, 8), np.int8)
    wide[:, 3:7] = e
    everywhere(kernel, [a, wide, b], truth, TARGETS)


@pytest.mark.parametrize("first", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_slices_that_start_anywhere_in_a_tile(first: int, dtype: str) -> None:
    """From device memory, from a fragment, back, and between tiles: wide accesses only where both sides allow them."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), dtype), B: T.Tensor((32, 32), dtype), C: T.Tensor((32, 32), dtype)):
        with T.Kernel(1, threads=64):
            near = T.alloc_shared((32, 48), dtype)
            other = T.alloc_shared((32, 64), dtype)
            f = T.alloc_fragment((32, 32), dtype)
            g = T.alloc_fragment((32, 32), dtype)
            T.copy(A, near[:, first : first + 32])
            T.copy(near[:, first : first + 32], f)
            for i, j in T.Parallel(32, 32):
                f[i, j] = f[i, j] * 2
            T.copy(f, other[:, first : first + 32])
            T.copy(other[:, first : first + 32], B)
            T.copy(other[:, first : first + 32], near[:, 16 - first : 48 - first])
            T.copy(near[:, 16 - first : 48 - first], g)
            T.copy(g, C)

    a = integers(7, (32, 32), dtype)
    everywhere(kernel, [a], [2 * a, 2 * a])
