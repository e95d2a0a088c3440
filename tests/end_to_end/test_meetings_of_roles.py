"""Meetings that a kernel asks for where threads that it does not count load its tiles."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.ir.instr import Sync
from tileworkbench.ir.planned import Role

from .harness import everywhere, instructions, integers

M, N, K, STEP = 64, 64, 256, 32


def product(meet):
    """C = A·B by a pipelined loop, and the sum of A[0, ::32] through a shared word that one thread keeps."""

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
        S: T.Tensor((1,), "float32"),
    ):
        with T.Kernel(1, threads=128):
            word = T.alloc_shared((1,), "float32")
            a = T.alloc_shared((M, STEP), "float16")
            b = T.alloc_shared((STEP, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            for i in T.Parallel(1):
                word[i] = 0.0
            meet()
            T.clear(c)
            for k in T.Pipelined(K // STEP, num_stages=2):
                T.copy(A[:, k * STEP : (k + 1) * STEP], a)
                T.copy(B[k * STEP : (k + 1) * STEP, :], b)
                T.gemm(a, b, c)
                for i in T.Parallel(1):
                    word[i] = word[i] + T.cast(a[0, 0], "float32")
                meet()
            T.copy(c, C)
            for i in T.Parallel(1):
                S[i] = word[i]

    return kernel


@T.macro
def all_threads():
    T.sync_threads()


@T.macro
def by_number():
    T.sync_threads(3)


@T.macro
def counted():
    T.sync_threads(3, 128)


@pytest.mark.parametrize("meet", [all_threads, by_number, counted], ids=["block", "number", "count"])
def test_only_the_threads_that_the_kernel_counts_meet(meet):
    a, b = integers(1, (M, K), "float16", 3), integers(2, (K, N), "float16", 3)
    wanted = a.astype(np.float64) @ b.astype(np.float64), a[0, ::STEP].sum(dtype=np.float64).reshape(1)
    made = everywhere(product(meet), [a, b], wanted, ("sm_80", "sm_90a"))
    hopper = made["sm_90a"]
    assert len([r for r in hopper.body if isinstance(r, Role)]) == 2
    asked = [s for s in instructions(hopper, Sync) if s.reason == "the kernel asks for it"]
    assert asked and all(s.threads == 128 for s in asked)
