"""Outputs that a function makes and returns, and what its attributes say about them."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import LaunchError, OptionError


def made_inside():
    @T.prim_func
    def kernel(A):
        A: T.Tensor[[32, 16], T.float32]
        T.annotate_compile_flags(["--use_fast_math"])
        T.annotate_pass_configs({"tl.enable_fast_math": True})
        B = T.empty([32, 16], T.float32)
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(32, 16):
                B[i, j] = A[i, j] + 1.0
        return B

    return kernel


def test_a_text_that_returns_its_output():
    kernel = made_inside()
    assert kernel.attrs["tilelang_out_idx"] == [-1] and kernel.attrs["global_symbol"] == "kernel"
    assert kernel.attrs["tilelang_compile_flags"] == ("--use_fast_math",)
    assert kernel.attrs["tilelang_pass_configs"] == {"tl.enable_fast_math": True}
    a = np.arange(512, dtype=np.float32).reshape(32, 16)
    np.testing.assert_array_equal(tw.compile(kernel, target="cpu")(a), a + 1)
    with pytest.raises(OptionError, match="Out index conflict") as caught:
        tw.compile(kernel, out_idx=[-1], target="cpu")
    assert isinstance(caught.value, ValueError)


def test_named_outputs_are_the_adapters():
    @T.prim_func
    def kernel(A, B, C):
        m = T.dynamic("m")
        A: T.Tensor[[m], T.int32]
        B: T.Tensor[[m * 2 + 1], T.int32]
        C: T.Tensor[[m + 1], T.int32]
        with T.Kernel(1, threads=1):
            for i in T.serial(m * 2 + 1):
                B[i] = A[i % m] + 1
            for i in T.serial(m + 1):
                C[i] = i

    assert "tilelang_out_idx" not in kernel.attrs
    made = tw.compile(kernel, out_idx=[1, 2], target="cpu")
    assert made.adapter.prim_func.attrs["tilelang_out_idx"] == [1, 2] and "tilelang_out_idx" not in kernel.attrs
    assert made.adapter.dynamic_symbolic_map is None and made.adapter.name == "kernel"
    assert made.adapter.get_exportable_executable().jit() is made
    a = np.arange(19, dtype=np.int32)
    b, c = made.adapter(a)
    np.testing.assert_array_equal(b, np.resize(a, 39) + 1)
    np.testing.assert_array_equal(c, np.arange(20))


def test_a_function_whose_macro_launches_is_called_with_tensors():
    @T.macro
    def double(A):
        M, N = A.shape
        B = T.empty(M, N, dtype=A.dtype)
        with T.Kernel(T.ceildiv(M, 16), threads=32) as bx:
            for i, j in T.Parallel(16, N):
                B[bx * 16 + i, j] = A[bx * 16 + i, j] * 2
        return B

    @tw.jit(target="cpu")
    def sized(A):
        M, N = T.const("M, N")
        A: T.Tensor[[M, N], T.int32]
        return double(A)

    @tw.jit(target="cpu")
    def fixed(A: T.Tensor[[48, 8], T.int32]):
        return double(A)

    a = np.arange(48 * 8, dtype=np.int32).reshape(48, 8)
    np.testing.assert_array_equal(sized(a), 2 * a)
    np.testing.assert_array_equal(fixed(a), 2 * a)
    np.testing.assert_array_equal(sized(a[:20]), 2 * a[:20])


@pytest.mark.parametrize("form", ["product", "sum", "both"])
def test_sizes_that_stand_in_sums_only(form):
    n, m = T.dynamic("n"), T.dynamic("m")
    extent = {"product": n * 4, "sum": n + 1, "both": 2 * n + m}[form]

    @T.prim_func
    def kernel(A: T.Tensor((extent,), "int32"), M: T.Tensor((m,), "int32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(extent):
                A[i] = n

    a, given = np.zeros(20, np.int32), np.zeros(6, np.int32)
    tw.compile(kernel, target="cpu")(a, given)
    np.testing.assert_array_equal(a, {"product": 5, "sum": 19, "both": 7}[form])
    if form != "sum":
        with pytest.raises(LaunchError, match="no whole number n"):
            tw.compile(kernel, target="cpu")(np.zeros(21, np.int32), given)
