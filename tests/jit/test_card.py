"""Compiled kernels on an NVIDIA card: arrays of each library, outputs, run-time sizes, checks and times."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench import tutorial

from .kernels import copy_kernel, gemm

pytestmark = pytest.mark.gpu


def whole(shape, seed=0):
    return np.random.default_rng(seed).integers(-2, 3, shape).astype("float16")


def exact(a, b):
    return a.astype("float64") @ b.astype("float64")


@pytest.mark.parametrize("target", ["auto", "sm_80/H200"])
def test_numpy_arrays_are_copied_there_and_back(target):
    kernel = tw.compile(gemm(200, 136, 72), out_idx=[-1], target=target)
    a, b = whole((200, 72)), whole((72, 136), 1)
    assert np.array_equal(kernel(a, b), exact(a, b))


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_arrays_of_a_library_come_back_as_its_own(library):
    module = pytest.importorskip(library)
    if library == "torch" and not module.cuda.is_available():
        pytest.skip("torch has no CUDA here")
    a, b = whole((200, 72)), whole((72, 136), 1)
    kernel = tw.compile(gemm(200, 136, 72), out_idx=[-1])
    given = [module.from_numpy(x).cuda() if library == "torch" else module.asarray(x) for x in (a, b)]
    found = kernel(*given)
    assert type(found) is type(given[0])
    there = found.cpu().numpy() if library == "torch" else found.get()
    assert np.array_equal(there, exact(a, b))


def test_rows_that_no_copy_engine_can_take_use_the_general_variant():
    m, n = T.dynamic("m n")
    kernel = tw.compile(copy_kernel(m, n), out_idx=[-1])
    for shape in ((64, 64), (65, 67), (1, 3), (128, 8)):
        a = whole(shape)
        assert np.array_equal(kernel(a), a + a)


def test_the_tutorial_is_right_on_the_card():
    for factory, reference in (
        (tutorial.add, tutorial.add_reference),
        (tutorial.gemm_relu, tutorial.gemm_relu_reference),
    ):
        found = tw.check(tw.compile(factory()), reference)
        assert found.ok and "card" in found.machine, str(found)


def test_an_eager_function_and_its_time():
    @tw.jit
    def scale(A, s: T.float32 = 2.0):
        N = T.const("N")
        A: T.Tensor[(N,), "float32"]
        B = T.empty((N,), "float32")
        with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
            for i in T.Parallel(256):
                B[bx * 256 + i] = A[bx * 256 + i] * s
        return B

    a = np.arange(1000, dtype="float32")
    assert np.array_equal(scale(a, 3.0), a * 3)
    assert 0 < scale.compile(a).get_profiler().do_bench(warmup=1, rep=5) < 1000
