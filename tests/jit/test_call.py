"""Calling compiled kernels on the CPU target: every style, every way of naming outputs, every kind of array."""

from __future__ import annotations

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import LaunchError, OptionError

from .kernels import copy_kernel, eager_double, gemm, lazy_double, scaled


def matrix(m, n, dtype="float16"):
    return np.arange(m * n).reshape(m, n).astype(dtype) % 17


@pytest.mark.parametrize("out_idx", [-1, 1, [-1], [1], (1,)])
def test_an_output_that_out_idx_names_is_returned(out_idx):
    kernel = tw.compile(copy_kernel(40, 33), out_idx=out_idx, target="cpu")
    a = matrix(40, 33)
    found = kernel(a)
    assert isinstance(found, np.ndarray) and found.dtype == np.float16
    assert np.array_equal(found, a * 2)


def test_without_out_idx_all_tensors_are_passed_and_nothing_is_returned():
    kernel = tw.compile(copy_kernel(40, 33), target="cpu")
    a, b = matrix(40, 33), np.zeros((40, 33), "float16")
    assert kernel(a, b) is None
    assert np.array_equal(b, a * 2)


def test_arguments_may_be_named():
    kernel = tw.compile(copy_kernel(40, 33), target="cpu", out_idx=[-1])
    a, b = matrix(40, 33), np.zeros((40, 33), "float16")
    assert np.array_equal(kernel(A=a), a * 2)
    assert kernel(A=a, B=b) is None and np.array_equal(b, a * 2)


def test_a_factory_gives_one_kernel_for_one_configuration():
    assert lazy_double.style == "lazy"
    kernel = lazy_double(20, 30)
    assert kernel is lazy_double(20, N=30) and kernel is lazy_double(20, 30, "float16")
    assert kernel is not lazy_double(20, 31) and kernel is not lazy_double(20, 30, dtype="float32")
    a = matrix(20, 30)
    assert np.array_equal(kernel(a), a * 2)


def test_configurations_that_compare_equal_are_still_different():
    @tw.jit(target="cpu")
    def factory(x):
        return copy_kernel(8, 8)

    kernels = [factory(x) for x in (1, 1.0, True)]
    assert len({id(kernel) for kernel in kernels}) == 3
    assert factory(1) is kernels[0]


def test_an_eager_function_compiles_for_its_shapes():
    assert eager_double.style == "eager"
    a = matrix(45, 70, "float32")
    assert np.array_equal(eager_double(a), a * 2)
    assert eager_double.compile(a) is eager_double.compile(a.copy())
    assert eager_double.compile(a) is not eager_double.compile(matrix(45, 71, "float32"))
    assert eager_double.compile(a) is not eager_double.compile(a, block=16)
    assert eager_double.compile(T.Tensor((45, 70), "float32")) is eager_double.compile(a)


def test_scalars_and_dynamic_extents_do_not_build_again():
    a, b = np.arange(70, dtype="float32"), np.arange(100, dtype="float32")
    doubled, shifted = scaled(a)
    assert np.array_equal(doubled, a * 2) and np.array_equal(shifted, a + 2)
    tripled, _ = scaled(b, 3.0)
    assert np.array_equal(tripled, b * 3)
    assert scaled.compile(a) is scaled.compile(b, 5.0)


def test_dynamic_rows():
    m = T.dynamic("m")
    kernel = tw.compile(gemm(m, 64, 48), out_idx=[-1], target="cpu")
    for rows in (1, 64, 97):
        a, b = matrix(rows, 48), matrix(48, 64)
        assert np.array_equal(kernel(a, b), a.astype("float64") @ b.astype("float64"))


def test_bfloat16_arrays():
    kernel = tw.compile(copy_kernel(16, 16, "bfloat16"), out_idx=[-1], target="cpu")
    a = matrix(16, 16).astype(ml_dtypes.bfloat16)
    found = kernel(a)
    assert found.dtype == a.dtype and np.array_equal(found.astype("float32"), a.astype("float32") * 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "float8_e4m3fn"])
def test_torch_tensors_come_back_as_torch_tensors(dtype):
    torch = pytest.importorskip("torch")
    kernel = tw.compile(copy_kernel(16, 16, dtype), out_idx=[-1], target="cpu")
    a = (torch.arange(256).reshape(16, 16) % 7).to(getattr(torch, dtype))
    found = kernel(a)
    assert found.dtype == a.dtype
    assert torch.equal(found.float(), a.float() * 2)
    out = torch.zeros_like(a)
    assert kernel(a, out) is None and torch.equal(out.float(), a.float() * 2)


def test_a_plain_function_is_a_kernel_too():
    def halve(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = A[i] * 0.5

    a = np.arange(32, dtype="float32")
    assert np.array_equal(tw.compile(halve, out_idx=1, target="cpu")(a), a / 2)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda k: k(), ["A", "is missing"]),
        (lambda k: k(matrix(40, 33), matrix(40, 33), matrix(40, 33)), ["3 arguments"]),
        (lambda k: k(matrix(40, 33), C=1), ["no parameter `C`"]),
        (lambda k: k(matrix(40, 33), A=1), ["`A` was given twice"]),
        (lambda k: k(matrix(40, 34)), ["`A`", "(40, 34)", "(40, 33)"]),
        (lambda k: k(matrix(40, 33).reshape(-1)), ["`A`", "1 dim", "has 2"]),
        (lambda k: k(matrix(40, 33, "float32")), ["`A`", "float32", "float16"]),
        (lambda k: k([1, 2]), ["A", "list"]),
    ],
)
def test_a_wrong_call_names_parameter_found_and_expected(call, words):
    kernel = tw.compile(copy_kernel(40, 33), out_idx=[-1], target="cpu")
    with pytest.raises(LaunchError) as caught:
        call(kernel)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert caught.value.loc is not None and caught.value.rule and caught.value.fix


def test_a_strided_torch_tensor_is_refused_as_on_a_card():
    torch = pytest.importorskip("torch")
    kernel = tw.compile(copy_kernel(33, 40), out_idx=[-1], target="cpu")
    with pytest.raises(LaunchError, match="not contiguous") as caught:
        kernel(torch.zeros(40, 33, dtype=torch.float16).t())
    assert "contiguous()" in caught.value.fix


@pytest.mark.parametrize("out_idx", [2, -3, [0, 0], "x", 1.5, True, [None]])
def test_a_wrong_out_idx(out_idx):
    with pytest.raises(OptionError) as caught:
        tw.compile(copy_kernel(8, 8), out_idx=out_idx, target="cpu")
    assert caught.value.loc is not None


def test_out_idx_and_empty_exclude_one_another():
    with pytest.raises(OptionError, match="eager"):
        tw.jit(eager_double.fn, out_idx=[-1], target="cpu")(matrix(4, 4, "float32"))


def test_a_factory_called_wrongly_names_what_is_missing():
    with pytest.raises(LaunchError, match="'N'"):
        lazy_double(3)
    with pytest.raises(LaunchError, match="`M` is a set"):
        lazy_double({3}, 4)


def test_compiling_the_same_text_again_gives_the_same_kernel():
    text = copy_kernel(8, 8)
    kernel = tw.compile(text, target="cpu")
    assert tw.compile(text, target="cpu") is kernel
    assert tw.compile(text, target="cpu", out_idx=-1) is not kernel
    assert tw.compile(copy_kernel(8, 8), target="cpu") is not kernel


def test_kernels_go_when_nobody_holds_them():
    kernel = tw.compile(copy_kernel(8, 8), target="cpu")
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None
