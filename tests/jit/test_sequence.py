"""Functions that launch several kernels one after the other, and kernels with workspaces."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import LanguageError, LaunchError


def two_steps(N=64):
    @T.prim_func
    def two_steps(A: T.Tensor((N,), "float32"), P: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
            for i in T.Parallel(32):
                P[bx * 32 + i] = A[bx * 32 + i] * 2
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = P[N - 1 - i] + 1

    return two_steps


def reference(a):
    return a * 2, a[::-1] * 2 + 1


def test_launches_follow_one_another_on_the_same_tensors():
    a, p, b = np.arange(64, dtype="float32"), np.zeros(64, "float32"), np.zeros(64, "float32")
    kernel = tw.compile(two_steps(), target="cpu")
    assert kernel(a, p, b) is None and len(kernel.parts) == 2
    assert np.array_equal(p, a * 2) and np.array_equal(b, a[::-1] * 2 + 1)
    found = tw.compile(two_steps(), out_idx=[1, 2], target="cpu")(a)
    assert [np.array_equal(x, y) for x, y in zip(found, reference(a), strict=True)] == [True, True]


@pytest.mark.parametrize("target", ["cpu", "sm_80"])
def test_a_sequence_is_checked_and_read_as_a_whole(target):
    kernel = tw.compile(two_steps(), target=target)
    found = tw.check(kernel, reference)
    assert found.ok, str(found)
    assert not tw.check(kernel, lambda a: (a * 2, a[::-1] * 2)).ok
    if target != "cpu":
        assert kernel.source.count("__global__") == 2
        assert {s.id for s in tw.Result(kernel).document.sections} == {"summary", "plan", "ir", "cuda"}


def test_torch_outputs():
    torch = pytest.importorskip("torch")
    found = tw.compile(two_steps(), out_idx=[1, 2], target="cpu")(torch.arange(64.0))
    assert torch.equal(found[1], torch.arange(64.0).flip(0) * 2 + 1)


def test_an_eager_function_with_two_launches():
    @tw.jit(target="cpu")
    def sums(A):
        N = T.const("N")
        A: T.Tensor[(N,), "float32"]
        P = T.empty((N,), "float32")
        B = T.empty((N,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                P[i] = A[i] * 2
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = P[i] + A[i]
        return P, B

    a = np.arange(40, dtype="float32")
    doubled, tripled = sums(a)
    assert np.array_equal(doubled, a * 2) and np.array_equal(tripled, a * 3)


@pytest.mark.parametrize("target", ["cpu", "sm_80"])
def test_a_workspace_is_made_for_every_call_and_seen_by_nobody(target):
    @T.prim_func
    def through_memory(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        W = T.alloc_global((64,), "float32")
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(32):
                W[bx * 32 + i] = A[bx * 32 + i] + 1
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                B[i] = W[63 - i]

    kernel = tw.compile(through_memory, out_idx=[-1], target=target)
    assert kernel.out_idx == [1]
    assert tw.check(kernel, lambda a: a[::-1] + 1).ok
    if target == "cpu":
        a = np.arange(64, dtype="float32")
        assert np.array_equal(kernel(a), a[::-1] + 1)
        with pytest.raises(LaunchError, match="3 arguments"):
            kernel(a, a, a)


def test_where_one_launch_is_needed_a_sequence_is_refused():
    with pytest.raises(LanguageError, match="2 kernels"):
        tw.simulate(two_steps(), *(np.zeros(64, "float32") for _ in range(3)))
