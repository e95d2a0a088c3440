"""The kernels that the templates speak of, in their plainest form: what they compute, not how fast."""

# Kernels are the language's text, which a type checker cannot read.
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

from .. import language as T
from ..language.dtypes import dtype as as_type

TILE = 64


def matmul(
    m: int, n: int, k: int, trans_a: bool, trans_b: bool, in_dtype: str, out_dtype: str, accum_dtype: str
) -> Any:
    """C = A · B in tiles of 64."""
    a_shape, b_shape = ((k, m) if trans_a else (m, k)), ((n, k) if trans_b else (k, n))
    a_tile, b_tile = ((TILE, TILE),) * 2
    operand, result, total = as_type(in_dtype), as_type(out_dtype), as_type(accum_dtype)

    @T.prim_func
    def main(A: T.Tensor(a_shape, operand), B: T.Tensor(b_shape, operand), C: T.Tensor((m, n), result)):
        with T.Kernel(T.ceildiv(n, TILE), T.ceildiv(m, TILE), threads=128) as (bx, by):
            a = T.alloc_shared(a_tile, operand)
            b = T.alloc_shared(b_tile, operand)
            c = T.alloc_fragment((TILE, TILE), total)
            T.clear(c)
            for ko in T.serial(T.ceildiv(k, TILE)):
                if trans_a:
                    T.copy(A[ko * TILE, by * TILE], a)
                else:
                    T.copy(A[by * TILE, ko * TILE], a)
                if trans_b:
                    T.copy(B[bx * TILE, ko * TILE], b)
                else:
                    T.copy(B[ko * TILE, bx * TILE], b)
                T.gemm(a, b, c, transpose_A=trans_a, transpose_B=trans_b)
            T.copy(c, C[by * TILE, bx * TILE])

    return main


def elementwise(count: int, dtype: str) -> Any:
    """y = x + 1."""
    kind = as_type(dtype)

    @T.prim_func
    def main(X: T.Tensor((count,), kind), Y: T.Tensor((count,), kind)):
        with T.Kernel(T.ceildiv(count, 1024), threads=128) as bx:
            for i in T.Parallel(1024):
                Y[bx * 1024 + i] = X[bx * 1024 + i] + 1

    return main


def row_sum(rows: int, columns: int, dtype: str) -> Any:
    """The sum of each row, with the summed axes brought together at the end."""
    kind = as_type(dtype)

    @T.prim_func
    def main(X: T.Tensor((rows, columns), kind), Y: T.Tensor((rows,), kind)):
        with T.Kernel(rows, threads=128) as bx:
            x = T.alloc_fragment((1, columns), kind)
            y = T.alloc_fragment((1,), kind)
            T.copy(X[bx, 0], x)
            T.reduce_sum(x, y, dim=1)
            T.copy(y, Y[bx])

    return main
