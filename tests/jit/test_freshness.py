"""A kernel that was kept is given back only while everything that it hangs on is as it was."""

from __future__ import annotations

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T

FACTOR = 2


def scale(x):
    return x * FACTOR


@tw.jit(out_idx=[-1], target="cpu")
def factory(N):
    factor = FACTOR

    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * factor

    return kernel


@tw.jit(target="cpu")
def through_a_helper(A):
    N = T.const("N")
    A: T.Tensor[(N,), "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            B[i] = scale(A[i])
    return B


def test_a_changed_global(monkeypatch):
    a = np.arange(8, dtype="float32")
    assert np.array_equal(factory(8)(a), a * 2) and np.array_equal(through_a_helper(a), a * 2)
    monkeypatch.setitem(globals(), "FACTOR", 5)
    assert np.array_equal(factory(8)(a), a * 5)
    assert np.array_equal(through_a_helper(a), a * 5)


def test_a_changed_closure():
    factor = 2

    @tw.jit(target="cpu")
    def kernel(A):
        N = T.const("N")
        A: T.Tensor[(N,), "float32"]
        B = T.empty((N,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * factor
        return B

    a = np.arange(8, dtype="float32")
    assert np.array_equal(kernel(a), a * 2)
    factor = 7
    assert np.array_equal(kernel(a), a * 7)


def test_an_unrelated_change_builds_nothing(monkeypatch):
    kernel = factory(8)
    monkeypatch.setitem(globals(), "SOMETHING_ELSE", 1)
    assert factory(8) is kernel


def test_another_target_is_another_kernel():
    @tw.jit(out_idx=[-1])
    def made(N):
        return factory.fn(N)

    with tw.options(target="cpu"):
        kernel = made(8)
        assert made(8) is kernel
    with tw.options(target="sm_80"):
        assert made(8).target.name == "sm_80"


def test_kernels_for_many_configurations():
    kernels = factory.par_compile([(4,), {"N": 5}, (4,)], num_workers=2)
    assert [k.params[0].shape for k in kernels] == [(4,), (5,), (4,)]
    assert factory.par_compile([(-1,)], ignore_error=True) == [None]
