"""Lowered kernels with the arguments that tell a right one from a wrong one, for faults planted in them.

They are small and go through every ring more than twice, so that each arrival, wait and count matters; the data is
exact, so that one changed bit shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import tileworkbench.language as T
from tests import kernels
from tileworkbench.ir.kernel import Kernel
from tileworkbench.pipeline import run_passes
from tileworkbench.simulate import thread
from tileworkbench.simulate.thread.mutate import Mutant, mutants
from tileworkbench.target import Target


@dataclass(frozen=True)
class Planted:
    """A right kernel: its inputs, and what it must give for them."""

    kernel: Kernel
    inputs: tuple[np.ndarray, ...]
    truth: np.ndarray

    def arguments(self) -> list[np.ndarray]:
        return [*(a.copy() for a in self.inputs), np.zeros_like(self.truth)]

    def mutants(self, kinds: Sequence[str] = ()) -> list[Mutant]:
        return list(mutants(self.kernel, kinds))


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def product(stages: int) -> tuple[Any, list[np.ndarray], np.ndarray]:
    """Seven trips: every version of the ring is filled twice or more."""
    a, b = numbers((64, 224), np.float16), numbers((224, 64), np.float16, 1)
    func = kernels.gemm(64, 64, 224, BM=64, BN=64, BK=32, stages=stages)
    return func, [a, b], (a.astype(np.int64) @ b).astype(np.float32)


def chained() -> tuple[Any, list[np.ndarray], np.ndarray]:
    """Two products a trip, the second fed from registers by the first, as in attention; three rounds of three trips."""
    rounds, trips, m, n, d = 3, 3, 64, 16, 16

    @T.prim_func
    def chained(
        Q: T.Tensor((rounds * m, d), "float16"),
        K: T.Tensor((trips * n, d), "float16"),
        V: T.Tensor((trips * n, d), "float16"),
        O: T.Tensor((rounds * m, d), "float32"),  # noqa: E741
    ):
        with T.Kernel(1, threads=128) as _:
            Q_shared = T.alloc_shared((m, d), "float16")
            K_shared = T.alloc_shared((n, d), "float16")
            V_shared = T.alloc_shared((n, d), "float16")
            scores = T.alloc_fragment((m, n), "float32")
            weights = T.alloc_fragment((m, n), "float16")
            acc = T.alloc_fragment((m, d), "float32")
            for r in T.serial(rounds):
                T.copy(Q[r * m, 0], Q_shared)
                T.clear(acc)
                for k in T.Pipelined(trips, num_stages=2):
                    T.copy(K[k * n, 0], K_shared)
                    T.clear(scores)
                    T.gemm(Q_shared, K_shared, scores, transpose_B=True)
                    T.copy(scores, weights)
                    T.copy(V[k * n, 0], V_shared)
                    T.gemm(weights, V_shared, acc)
                T.copy(acc, O[r * m, 0])

    q, k, v = (numbers((x, d), np.float16, seed) for seed, x in enumerate((rounds * m, trips * n, trips * n)))
    scores = q.astype(np.int64) @ k.T.astype(np.int64)
    return chained, [q, k, v], (scores @ v.astype(np.int64)).astype(np.float32)


def centred() -> tuple[Any, list[np.ndarray], np.ndarray]:
    """Two reductions of rows over several warps, as in softmax, in a loop over row blocks."""

    @T.prim_func
    def centred(A: T.Tensor((6, 256), "float32"), O: T.Tensor((6, 256), "float32")):  # noqa: E741
        with T.Kernel(1, threads=128) as _:
            x = T.alloc_fragment((2, 256), "float32")
            most = T.alloc_fragment((2,), "float32")
            total = T.alloc_fragment((2,), "float32")
            for r in T.serial(3):
                T.copy(A[r * 2, 0], x)
                T.reduce_max(x, most, dim=1)
                for i, j in T.Parallel(2, 256):
                    x[i, j] = most[i] - x[i, j]
                T.reduce_sum(x, total, dim=1)
                for i, j in T.Parallel(2, 256):
                    x[i, j] = total[i] - x[i, j]
                T.copy(x, O[r * 2, 0])

    a = numbers((6, 256), np.float32) * np.arange(1, 7, dtype=np.float32)[:, None]
    x = a.max(1, keepdims=True) - a
    return centred, [a], (x.sum(1, keepdims=True) - x).astype(np.float32)


def added() -> tuple[Any, list[np.ndarray], np.ndarray]:
    """Two loaded tiles added in a loop, the sum turned round through a shared tile."""

    @T.prim_func
    def added(A: T.Tensor((96, 64), "float32"), B: T.Tensor((96, 64), "float32"), O: T.Tensor((96, 64), "float32")):  # noqa: E741
        with T.Kernel(1, threads=64) as _:
            S = T.alloc_shared((32, 64), "float32")
            R = T.alloc_shared((32, 64), "float32")
            Q = T.alloc_shared((32, 64), "float32")
            for r in T.serial(3):
                T.copy(A[r * 32, 0], S)
                T.copy(B[r * 32, 0], R)
                for i, j in T.Parallel(32, 64):
                    Q[i, j] = S[i, j] + R[i, 63 - j]
                T.copy(Q, O[r * 32, 0])

    a, b = numbers((96, 64), np.float32), numbers((96, 64), np.float32, 1)
    return added, [a, b], a + b[:, ::-1]


CASES: dict[str, tuple[Callable[[], tuple[Any, list[np.ndarray], np.ndarray]], str]] = {
    "gemm sm_80": (lambda: product(3), "sm_80"),
    "gemm sm_90a": (lambda: product(3), "sm_90a"),
    "gemm gfx942": (lambda: product(2), "gfx942"),
    "chained sm_90a": (chained, "sm_90a"),
    "chained sm_80": (chained, "sm_80"),
    "centred sm_80": (centred, "sm_80"),
    "added sm_90a": (added, "sm_90a"),
}


@cache
def planted(name: str) -> Planted:
    """The case's lowered kernel, after it has given the right result."""
    make, target = CASES[name]
    func, inputs, truth = make()
    kernel = run_passes(func.kernel, Target.of(target)).with_(outputs=(len(inputs),))
    made = Planted(kernel, tuple(inputs), truth)
    args = made.arguments()
    thread.run(kernel, args, target=Target.of(target))
    np.testing.assert_array_equal(args[-1], truth)
    return made
