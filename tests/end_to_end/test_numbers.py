"""Python numbers in kernels: the types that they take, and what they are rounded to."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, integers


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_narrow_integers_times_numbers_do_not_wrap(dtype):
    @T.prim_func
    def kernel(A: T.Tensor((64,), dtype), B: T.Tensor((3, 64), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                B[0, i] = A[i] * 100
                B[1, i] = (A[i] & 15) << 12
                B[2, i] = 5 - A[i]

    a = np.linspace(np.iinfo(dtype).min, np.iinfo(dtype).max, 64).astype(dtype)
    wide = a.astype(np.int64)
    everywhere(kernel, [a], np.stack([wide * 100, (wide & 15) << 12, 5 - wide]))


def test_halves_times_fractions_are_float32():
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float16"), B: T.Tensor((2, 64), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                B[0, i] = A[i] * 0.1
                B[1, i] = A[i] + 1e6

    a = np.arange(64).astype("float16")
    exact = a.astype(np.float32)
    everywhere(kernel, [a], np.stack([exact * np.float32(0.1), exact + np.float32(1e6)]))


def test_float64_takes_numbers_as_they_are():
    @T.prim_func
    def kernel(A: T.Tensor((4,), "float64"), B: T.Tensor((5, 4), "float64")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[0, i] = T.float64(0.1)
                B[1, i] = T.cast(0.1, "float64") + A[i]
                B[2, i] = T.max(A[i], 0.1)
                B[3, i] = T.if_then_else(A[i] > 0, A[i], 0.1)
                B[4, i] = T.clamp(A[i], -0.1, 0.7)

    a = np.array([-3.0, 0.0, 0.3, 5.0])
    rows = [np.full(4, 0.1), 0.1 + a, np.maximum(a, 0.1), np.where(a > 0, a, 0.1), np.clip(a, -0.1, 0.7)]
    everywhere(kernel, [a], np.stack(rows))


def test_unsigned_beside_signed_is_unsigned():
    @T.prim_func
    def kernel(A: T.Tensor((4,), "uint32"), N: T.Tensor((4,), "int32"), B: T.Tensor((2, 4), "uint32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[0, i] = A[i] % N[i]
                B[1, i] = A[i] >> N[i]

    a = np.array([0xFFFFFFFF, 0x80000001, 7, 0xDEADBEEF], dtype="uint32")
    n = np.array([10, 7, 3, 13], dtype="int32")
    everywhere(kernel, [a, n], np.stack([a % n.astype("uint32"), a >> n.astype("uint32")]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_signs_and_bits_of_converted_values(dtype):
    """Fuzzer's seed 21553: ptxas 13.0 forgets a constant mask on one of two conversions that it makes at once."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), C: T.Tensor((32, 64), dtype), B: T.Tensor((6, 32, 64), "uint16")):
        with T.Kernel(1, threads=64):
            for i, j in T.Parallel(32, 64):
                C[i, j] = T.abs(T.cast(A[i, j], dtype))
            for i, j in T.Parallel(32, 64):
                B[0, i, j] = T.reinterpret(T.cast(A[i, j], dtype), "uint16") & 0x7FFF
            for i, j in T.Parallel(32, 64):
                B[1, i, j] = T.cast(T.reinterpret(T.cast(A[i, j], dtype), "int16") & 0x03FF, "uint16")
            for i, j in T.Parallel(32, 64):
                B[2, i, j] = T.cast(T.cast(T.reinterpret(T.cast(A[i, j], dtype), "uint16"), "int32") & 0xFF, "uint16")
            for i, j in T.Parallel(32, 64):
                B[3, i, j] = T.cast(T.cast(T.reinterpret(T.cast(A[i, j], dtype), "uint16"), "uint8"), "uint16")
            for i, j in T.Parallel(32, 64):
                B[4, i, j] = T.reinterpret(T.cast(A[i, j], dtype), "uint16") % 64
            for i, j in T.Parallel(32, 64):
                B[5, i, j] = T.reinterpret(T.abs(T.cast(A[i, j], dtype)), "uint16")

    a = integers(61, (32, 64), span=1000) / np.float32(7)
    exact = a.astype({"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}[dtype])
    bits = exact.view(np.uint16)
    everywhere(
        kernel,
        [a],
        [np.abs(exact), np.stack([bits & 0x7FFF, bits & 0x3FF, bits & 255, bits & 255, bits % 64, bits & 0x7FFF])],
    )
