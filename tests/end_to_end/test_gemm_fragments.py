"""Products whose operands are fragments: what one thread holds is where the instruction wants it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import ALL, NVIDIA, everywhere, lowered
from tileworkbench.errors import TargetError

KINDS = {"float16": np.float16, "float32": np.float32, "int8": np.int8, "float8_e4m3fn": ml_dtypes.float8_e4m3fn}


def product(M, N, K, dtype, accum, threads, spaces, ta, tb):
    alloc_a, alloc_b = (T.alloc_fragment if s == "fragment" else T.alloc_shared for s in spaces)
    shape_a, shape_b = (K, M) if ta else (M, K), (N, K) if tb else (K, N)

    @T.prim_func
    def kernel(A: T.Tensor(shape_a, dtype), B: T.Tensor(shape_b, dtype), C: T.Tensor((M, N), accum)):
        with T.Kernel(1, threads=threads):
            a = alloc_a(shape_a, dtype)
            b = alloc_b(shape_b, dtype)
            c = T.alloc_fragment((M, N), accum)
            T.clear(c)
            T.copy(A, a)
            for i, j in T.Parallel(*shape_b):
                b[i, j] = B[i, j]
            T.gemm(a, b, c, transpose_A=ta, transpose_B=tb)
            T.copy(c, C)

    return kernel


def checked(dtype, accum, threads, spaces, ta=False, tb=False, targets=NVIDIA, shape=(32, 64, 64)):
    M, N, K = shape
    rng = np.random.default_rng(1)
    a = rng.integers(-4, 5, (K, M) if ta else (M, K)).astype(KINDS[dtype])
    b = rng.integers(-4, 5, (N, K) if tb else (K, N)).astype(KINDS[dtype])
    x, y = a.astype(np.float64), b.astype(np.float64)
    truth = (x.T if ta else x) @ (y.T if tb else y)
    return everywhere(product(M, N, K, dtype, accum, threads, spaces, ta, tb), [a, b], truth, targets)


@pytest.mark.parametrize("threads", [32, 64, 128])
@pytest.mark.parametrize("tb", [False, True])
def test_b_from_a_fragment(threads, tb):
    kernels = checked("float16", "float32", threads, ("shared", "fragment"), tb=tb)
    assert all(any(d.chosen.startswith("mma") for d in k.decisions) for k in kernels.values())


@pytest.mark.parametrize(("ta", "tb"), [(False, False), (True, False), (True, True)])
def test_both_from_fragments_stored_either_way(ta, tb):
    checked("float16", "float32", 128, ("fragment", "fragment"), ta, tb)


def test_other_types():
    checked("float32", "float32", 32, ("shared", "fragment"), shape=(16, 32, 16))
    checked("int8", "int32", 64, ("fragment", "fragment"), tb=True)
    checked("float8_e4m3fn", "float32", 64, ("shared", "fragment"))  # by float16 on sm_80


def test_amds_instructions():
    checked("float16", "float32", 128, ("shared", "fragment"), targets=["gfx942"])


def test_a_part_of_a_fragment_is_refused():
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_fragment((64, 64), "float16")
            c = T.alloc_fragment((32, 64), "float32")
            T.copy(A, a)
            T.clear(b)
            T.clear(c)
            T.gemm(a, b[0:32, 0:64], c)
            T.copy(c, C)

    assert "sm_80" in ALL
    with pytest.raises(TargetError, match="a part of a fragment"):
        lowered(kernel, "sm_80")
