"""The smallest kernel: a sum through shared tiles, whose types the caller chooses."""

from __future__ import annotations

from typing import Any

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, numbers


@tw.jit(target="cpu")
def add(A, B, BM: int, BN: int, dtype: str, out: str, threads: int):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), dtype)
    B: T.Tensor((M, N), dtype)
    C = T.empty((M, N), out)
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
        a = T.alloc_shared((BM, BN), dtype)
        b = T.alloc_shared((BM, BN), dtype)
        total = T.alloc_fragment((BM, BN), out)
        result = T.alloc_shared((BM, BN), out)
        T.copy(A[by * BM, bx * BN], a)
        T.copy(B[by * BM, bx * BN], b)
        for i, j in T.Parallel(BM, BN):
            total[i, j] = a[i, j] + b[i, j]
        T.copy(total, result)
        T.copy(result, C[by * BM, bx * BN])
    return C


def data(M: int, N: int, dtype: str, **_: Any) -> Data:
    a, b = numbers(1, (M, N), dtype, 50), numbers(2, (M, N), dtype, 50)
    return Data({"A": a, "B": b}, {"C": Expected(a.astype(float) + b.astype(float))})


ENTRIES = [
    Entry("sum", ("elementwise/example_elementwise_add.py",), add.compile, data,
          {"M": 50, "N": 72, "BM": 32, "BN": 32, "dtype": "float16", "out": "float32", "threads": 128},
          {"M": 4096, "N": 4096, "BM": 32, "BN": 32, "dtype": "float32", "out": "float32", "threads": 128}),
]  # fmt: skip
