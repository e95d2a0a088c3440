"""T.round in both ways of breaking ties, and roundings that half precision does not have."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError

from .harness import everywhere

EDGES = (
    0.5,
    1.5,
    2.5,
    -0.5,
    -2.5,
    0.49999997,
    -0.49999997,
    2.4,
    -2.6,
    0.0,
    1e6,
    -8388609.0,
    np.inf,
    -np.inf,
    np.nan,
    7.0,
)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_ties(dtype):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(A: T.Tensor((16,), dtype), B: T.Tensor((16,), dtype), C: T.Tensor((16,), dtype)):
        with T.Kernel(threads=32):
            for i in T.Parallel(16):
                B[i] = T.round(A[i], "ties-away-from-zero")
                C[i] = T.round(A[i])

    with np.errstate(over="ignore"):
        a = np.array(EDGES, dtype)
    whole = np.trunc(a.astype("float64"))
    up = np.abs(a.astype("float64") - np.where(np.isfinite(a), whole, 0)) >= 0.5
    away = np.where(np.isfinite(a) & up, whole + np.sign(a.astype("float64")), whole)
    everywhere(kernel, [a], [away, np.rint(a.astype("float64"))])


def test_whole_numbers_are_whole():
    @T.prim_func
    def kernel(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(threads=32):
            for i in T.Parallel(16):
                B[i] = T.round(A[i], rounding_mode="ties-away-from-zero")

    a = np.arange(-8, 8, dtype="int32")
    everywhere(kernel, [a], a, ("sm_80",))


@pytest.mark.parametrize(
    ("dtype", "call", "words"),
    [
        ("float16", lambda x: T.ieee_add(x, x, "rz"), "Only rounding mode 'rn' is available for half precision"),
        ("bfloat16", lambda x: T.ieee_fsqrt(x, rounding_mode="ru"), "Only rounding mode 'rn'"),
        ("float64", lambda x: T.ieee_frsqrt(x), "not supported for float64"),
    ],
)
def test_what_no_instruction_rounds(dtype, call, words):  # type: ignore[no-untyped-def]
    with pytest.raises(LanguageError, match=words):

        @T.prim_func
        def kernel(A: T.Tensor((16,), dtype), B: T.Tensor((16,), dtype)):
            with T.Kernel(1, threads=32) as bx:
                B[bx] = call(A[bx])
