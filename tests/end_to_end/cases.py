"""Cases with inputs and independent float64 references, for every machine that can run a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tests import kernels

CONTAINER = {"float16": np.float16, "float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "int32": np.int32}


@dataclass(frozen=True)
class Case:
    """`make()` gives the PrimFunc, its inputs, the float64 truth and an absolute bound per element (0: bit-equal)."""

    name: str
    make: Callable[[], tuple[Any, list[np.ndarray], np.ndarray, Any]]


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, span: int = 4) -> np.ndarray:
    """Small integers, different in rows and columns, so that a permuted operand changes the result."""
    values = rng.integers(-span, span + 1, shape)
    return values.astype(CONTAINER[dtype])


def add_case(name: str, factory: Any, shape: tuple[int, ...], dtype: str) -> Case:
    def make() -> tuple[Any, list[np.ndarray], np.ndarray, Any]:
        rng = np.random.default_rng(1)
        a, b = (integers(rng, shape, dtype, 100) for _ in range(2))
        return factory(), [a, b], a.astype(np.float64) + b.astype(np.float64), 0.0

    return Case(name, make)


def gemm_case(name: str, M: int, N: int, K: int, *, symbolic: bool = False, **options: Any) -> Case:
    def make() -> tuple[Any, list[np.ndarray], np.ndarray, Any]:
        rng = np.random.default_rng(2)
        dtype = options.get("dtype", "float16")
        ta, tb = options.get("trans_a", False), options.get("trans_b", False)
        a = integers(rng, (K, M) if ta else (M, K), dtype)
        b = integers(rng, (N, K) if tb else (K, N), dtype)
        truth = (a.T if ta else a).astype(np.float64) @ (b.T if tb else b).astype(np.float64)
        if options.get("relu"):
            truth = np.maximum(truth, 0)
        rows = kernels.T.dynamic("m") if symbolic else M
        return kernels.gemm(rows, N, K, **options), [a, b], truth, 0.0

    return Case(name, make)


def softmax_case(name: str, M: int, N: int, **options: Any) -> Case:
    def make() -> tuple[Any, list[np.ndarray], np.ndarray, Any]:
        a = (np.random.default_rng(3).standard_normal((M, N)) * 3).astype(np.float32)
        e = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
        truth = e / e.sum(1, keepdims=True)
        # exp2 of an argument rounded to float32 (2^-23 relative times |x| log2 e, |x| < 30) plus exp2's 2 ulp, the
        # sum's N roundings and the quotient's one.
        return kernels.softmax(M, N, **options), [a], truth, truth * (64 + N) * 2.0**-23

    return Case(name, make)


def reduce_case(name: str, kind: str, M: int, N: int, dim: int, **options: Any) -> Case:
    def make() -> tuple[Any, list[np.ndarray], np.ndarray, Any]:
        a = integers(np.random.default_rng(4), (M, N), options.get("dtype", "float32"), 50)
        x = a.astype(np.float64)
        truth = {
            "sum": x.sum(dim), "max": x.max(dim), "min": x.min(dim), "abssum": np.abs(x).sum(dim),
            "absmax": np.abs(x).max(dim),
        }[kind]  # fmt: skip
        if not options.get("clear", True):
            truth = truth + 5 if kind == "sum" else np.maximum(truth, 5)
        return kernels.reduce(kind, M, N, dim, **options), [a], truth, 0.0

    return Case(name, make)


def attention_case(name: str, B: int, H: int, S: int, D: int, causal: bool, **options: Any) -> Case:
    def make() -> tuple[Any, list[np.ndarray], np.ndarray, Any]:
        rng = np.random.default_rng(5)
        q, k, v = (rng.standard_normal((B, S, H, D)).astype(np.float16) for _ in range(3))
        qs, ks, vs = (x.astype(np.float64).transpose(0, 2, 1, 3) for x in (q, k, v))
        scores = qs @ ks.transpose(0, 1, 3, 2) * D**-0.5
        if causal:
            scores = np.where(np.tril(np.ones((S, S), bool)), scores, -np.inf)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        truth = (p @ vs).transpose(0, 2, 1, 3)
        # Weights are rounded to fp16 (2^-11 relative), the output once more, exp2 and sums in float32 add far less.
        bound = 2.0**-10 * (p @ np.abs(vs)).transpose(0, 2, 1, 3) + 2.0**-10 * np.abs(truth) + 2.0**-14
        return kernels.attention(B, H, S, D, causal=causal, **options), [q, k, v], truth, bound

    return Case(name, make)


def small_cases() -> list[Case]:
    """Sizes that every simulator runs in well under a second."""
    cases = [
        add_case("add 1-D", lambda: kernels.add_1d(1024), (1024,), "float32"),
        add_case("add 1-D tail", lambda: kernels.add_1d(1000, dtype="float16"), (1000,), "float16"),
        add_case("add 2-D", lambda: kernels.add_2d(64, 128), (64, 128), "float32"),
        add_case("add 2-D fp16", lambda: kernels.add_2d(64, 128, dtype="float16"), (64, 128), "float16"),
        add_case("add 2-D tail", lambda: kernels.add_2d(50, 100), (50, 100), "float32"),
        add_case("add 2-D odd tail", lambda: kernels.add_2d(33, 67), (33, 67), "float32"),
        add_case(
            "add 2-D unstaged tail", lambda: kernels.add_2d(33, 67, staged=False, dtype="float16"), (33, 67), "float16"
        ),
    ]
    small = {"BM": 64, "BN": 64, "BK": 32}
    for ta in (False, True):
        for tb in (False, True):
            name = f"gemm {'T' if ta else 'N'}{'T' if tb else 'N'}"
            cases.append(gemm_case(name, 64, 128, 96, trans_a=ta, trans_b=tb, **small))
    cases += [gemm_case(f"gemm {s} stages", 64, 64, 160, stages=s, **small) for s in (0, 1, 2, 4)]
    cases += [
        gemm_case("gemm bf16", 64, 64, 64, dtype="bfloat16", **small),
        gemm_case("gemm fp16 out relu", 64, 64, 64, out="float16", relu=True, **small),
        gemm_case("gemm tail", 72, 80, 104, **small),
        gemm_case("gemm odd tail", 37, 43, 29, **small),
        gemm_case("gemm short loop", 64, 64, 32, stages=4, **small),
        gemm_case("gemm two warpgroups", 128, 64, 64, BM=128, BN=64, BK=32, threads=256),
        gemm_case("gemm dynamic rows", 100, 64, 64, symbolic=True, **small),
        gemm_case("gemm staged out", 64, 64, 96, staged_out=True, out="float16", **small),
        gemm_case("gemm staged out tail", 72, 80, 104, staged_out=True, **small),
        gemm_case("gemm row panels", 192, 256, 32, panel=2, **small),
        gemm_case("gemm column panels", 160, 192, 32, panel=2, order="column", **small),
        gemm_case("gemm dynamic panels", 200, 128, 32, symbolic=True, panel=3, **small),
        softmax_case("softmax", 32, 128),
        softmax_case("softmax rows of 96", 20, 96, BM=8),
        attention_case("attention", 1, 1, 128, 64, False),
        attention_case("attention causal", 1, 1, 128, 64, True),
    ]
    for dim in (0, 1):
        for kind in ("sum", "max", "min", "abssum", "absmax"):
            cases.append(reduce_case(f"reduce {kind} over {dim}", kind, 32, 48, dim))
        cases.append(reduce_case(f"reduce sum into old over {dim}", "sum", 32, 64, dim, clear=False))
        cases.append(reduce_case(f"reduce max into old over {dim}", "max", 16, 24, dim, clear=False))
    return cases


def compare(got: np.ndarray, truth: np.ndarray, bound: Any) -> None:
    """Every element within its bound; NaN never passes. A bound of 0 asks for the correctly rounded value."""
    if np.isscalar(bound) and bound == 0:
        np.testing.assert_array_equal(got, truth.astype(got.dtype))
        return
    bad = ~(np.abs(got.astype(np.float64) - truth) <= bound)
    if bad.any():
        at = tuple(int(i[0]) for i in np.nonzero(bad))
        raise AssertionError(f"{bad.sum()} of {bad.size} elements off; first at {at}: {got[at]} for {truth[at]}")
