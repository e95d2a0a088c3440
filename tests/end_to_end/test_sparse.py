"""T.gemm_sp on every machine: transposes, operand spaces, dtypes of operands and of metadata."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import built, everywhere, instructions, lowered
from tileworkbench.errors import SimulationError, TargetError
from tileworkbench.ir.instr import MmaSparse
from tileworkbench.simulate import tile
from tileworkbench.target import Target

CONTAINER = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "int8": np.int8, "uint8": np.uint8,
    "float8_e5m2": ml_dtypes.float8_e5m2, "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
BOTH = ("sm_80", "sm_90a")


def product(  # type: ignore[no-untyped-def]
    M, N, K, BM, BN, BK, *, dtype="float16", accum="float32", meta="int16", ta=False, te=False, tb=False, spaces="ss",
    stages=2, threads=128, clear=False,
):  # fmt: skip
    factor = np.dtype(meta).itemsize * 2 * (2 if dtype == "float32" else 4)

    def turned(flag, rows, columns):
        return (columns, rows) if flag else (rows, columns)

    def origin(flag, row, column):
        return (column, row) if flag else (row, column)

    @T.prim_func
    def kernel(
        A: T.Tensor(turned(ta, M, K // 2), dtype),
        E: T.Tensor(turned(te, M, K // factor), meta),
        B: T.Tensor(turned(tb, K, N), dtype),
        C: T.Tensor((M, N), accum),
    ):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            A_s = T.alloc_shared(turned(ta, BM, BK // 2), dtype)
            E_s = T.alloc_shared(turned(te, BM, BK // factor), meta)
            B_s = T.alloc_shared(turned(tb, BK, BN), dtype)
            C_l = T.alloc_fragment((BM, BN), accum)
            T.fill(C_l, 3 if clear else 0)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                ea, eb = origin(te, by * BM, k * (BK // factor))
                aa, ab = origin(ta, by * BM, k * (BK // 2))
                ba, bb = origin(tb, k * BK, bx * BN)
                T.copy(E[ea, eb], E_s)
                T.copy(A[aa, ab], A_s)
                T.copy(B[ba, bb], B_s)
                if spaces[0] == "r":
                    A_f = T.alloc_fragment(turned(ta, BM, BK // 2), dtype)
                    T.copy(A_s, A_f)
                if spaces[1] == "r":
                    B_f = T.alloc_fragment(turned(tb, BK, BN), dtype)
                    T.copy(B_s, B_f)
                T.gemm_sp(
                    A_f if spaces[0] == "r" else A_s,
                    E_s,
                    B_f if spaces[1] == "r" else B_s,
                    C_l,
                    ta,
                    te,
                    tb,
                    clear_accum=clear,
                )
            T.copy(C_l, C[by * BM, bx * BN])

    return kernel


def operands(M: int, N: int, K: int, dtype: str, meta: str, seed: int = 0) -> tuple[np.ndarray, ...]:
    """(held half of A, metadata, B, product), every choice of places among them; small integers, exact in all types."""
    rng = np.random.default_rng(seed)
    count, size = (1, 2) if dtype == "float32" else (2, 4)
    groups = K // size
    low = 0 if dtype == "uint8" else -3
    held = rng.integers(low, 4, (M, groups, count))
    places = np.sort(np.argsort(rng.random((M, groups, size)), axis=-1)[..., :count], axis=-1)
    dense = np.zeros((M, groups, size), np.int64)
    np.put_along_axis(dense, places, held, axis=-1)
    fields = places[..., 0] | places[..., 1] << 2 if count == 2 else np.where(places[..., 0] == 1, 0b1110, 0b0100)
    bits = np.dtype(meta).itemsize * 8
    packed = (fields.astype(np.uint64).reshape(M, -1, bits // 4) << np.arange(0, bits, 4, dtype=np.uint64)).sum(-1)
    words = packed.astype(f"uint{bits}").view(meta)
    b = rng.integers(low, 4, (K, N))
    kind = CONTAINER[dtype]
    return held.reshape(M, -1).astype(kind), words, b.astype(kind), dense.reshape(M, K) @ b


def check(M: int, N: int, K: int, BM: int, BN: int, BK: int, targets: Any = BOTH, **options: Any) -> Any:
    dtype, meta = options.get("dtype", "float16"), options.get("meta", "int16")
    a, e, b, truth = operands(M, N, K, dtype, meta)
    given = [
        np.ascontiguousarray(x.T) if options.get(flag) else x for x, flag in ((a, "ta"), (e, "te"), (b, "tb"))
    ]
    kernels = everywhere(product(M, N, K, BM, BN, BK, **options), given, truth, targets)
    for kernel in kernels.values():
        assert instructions(kernel, MmaSparse)
    return kernels


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("ta", [False, True])
def test_transposes(ta: bool, tb: bool) -> None:
    check(64, 64, 128, 32, 32, 64, ta=ta, te=ta, tb=tb)


@pytest.mark.parametrize("spaces", ["rs", "sr", "rr"])
@pytest.mark.parametrize(("ta", "tb"), [(False, True), (True, False)])
def test_fragments(spaces: str, ta: bool, tb: bool) -> None:
    check(64, 32, 64, 64, 32, 32, spaces=spaces, ta=ta, te=ta, tb=tb)


@pytest.mark.parametrize("meta", ["int8", "int16", "int32", "uint16"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "float8_e5m2"])
def test_dtypes(dtype: str, meta: str) -> None:
    accum = "int32" if dtype == "int8" else "float32"
    check(64, 16, 128, 32, 16, 64, dtype=dtype, meta=meta, accum=accum, tb=True)
