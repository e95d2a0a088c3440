"""The planner finds overlap by itself, in texts that nobody tuned it for, and keeps every result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tests import kernels
from tests.end_to_end.cases import attention_case, compare, integers
from tileworkbench.ir.check import check
from tileworkbench.ir.kernel import Kernel
from tileworkbench.pipeline import Step, run_passes
from tileworkbench.simulate import thread
from tileworkbench.target import Target

TARGET = Target.of("sm_90a")
SCHEDULES = ("eager", "latest", "random")


def lowered(kernel: Kernel) -> tuple[Kernel, str]:
    steps: list[Step] = []
    out = run_passes(kernel, TARGET, lambda step: (check(step.after, target=TARGET), steps.append(step)))  # type: ignore[func-returns-value]
    return out, "; ".join(out.notes)


def chain(M: int, K: int, L: int, trips: Any, act: str, order: str = "before", dtype: str = "float16") -> Any:
    """O += f(A·B(i)) · C(i): two products a trip, an activation between them, and a scale that the trip changes."""

    @T.prim_func
    def chain(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, 64 * L), dtype),
        C: T.Tensor((64 * L, 64), dtype),
        O: T.Tensor((M, 64), "float32"),  # noqa: E741
        n: T.int32,
    ):
        with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
            A_s = T.alloc_shared((64, K), dtype)
            B_s = T.alloc_shared((K, 64), dtype)
            C_s = T.alloc_shared((64, 64), dtype)
            P = T.alloc_fragment((64, 64), "float32")
            P_half = T.alloc_fragment((64, 64), dtype)
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(A[bx * 64, 0], A_s)
            T.clear(acc)
            for i in T.Pipelined(L if trips is None else n, num_stages=2):
                shift = i % 2 + 1
                T.copy(B[0, i * 64], B_s)
                T.clear(P)
                T.gemm(A_s, B_s, P)
                for r, c in T.Parallel(64, 64):
                    if act == "relu":
                        P[r, c] = T.max(P[r, c], 0)
                    elif act == "shift":
                        P[r, c] = T.max(P[r, c], 0) + shift
                    else:
                        P[r, c] = T.if_then_else(P[r, c] > 2, 1, -1)
                T.copy(P, P_half)
                if order == "before":
                    for r, c in T.Parallel(64, 64):
                        acc[r, c] = acc[r, c] * -1
                T.copy(C[i * 64, 0], C_s)
                T.gemm(P_half, C_s, acc)
                if order == "after":
                    for r, c in T.Parallel(64, 64):
                        acc[r, c] = acc[r, c] * -1
            T.copy(acc, O[bx * 64, 0])

    return chain


def truth(a: np.ndarray, b: np.ndarray, c: np.ndarray, trips: int, act: str, order: str) -> np.ndarray:
    out = np.zeros((a.shape[0], 64))
    for i in range(trips):
        p = a.astype(np.float64) @ b[:, i * 64 : (i + 1) * 64]
        p = np.where(p > 2, 1, -1) if act == "sign" else np.maximum(p, 0) + (i % 2 + 1 if act == "shift" else 0)
        product = p.astype(np.float16).astype(np.float64) @ c[i * 64 : (i + 1) * 64]
        out = -(out + product) if order == "after" else -out + product
    return out


@pytest.mark.parametrize("act", ("relu", "sign", "shift"))
@pytest.mark.parametrize("order", ("before", "after"))
@pytest.mark.parametrize(("length", "trips"), [(3, None), (4, 0), (4, 1), (4, 2), (4, 4)])
def test_chained_products(act: str, order: str, length: int, trips: int | None) -> None:
    kernel, notes = lowered(chain(64, 32, length, trips, act, order).kernel)
    assert "products overlap" in notes
    rng = np.random.default_rng(3)
    a, b, c = (integers(rng, s, "float16", 2) for s in ((64, 32), (32, 64 * length), (64 * length, 64)))
    count = length if trips is None else trips
    for schedule in SCHEDULES:
        out = np.zeros((64, 64), np.float32)
        thread.run(kernel, [a, b, c, out, count], schedule=schedule, target=TARGET, outputs=[3])
        np.testing.assert_array_equal(out, truth(a, b, c, count, act, order))


@pytest.mark.parametrize("causal", (False, True))
def test_attention_from_its_text(causal: bool) -> None:
    _, inputs, expected, bound = attention_case("", 1, 1, 256, 64, causal).make()
    kernel, notes = lowered(kernels.attention(1, 1, 256, 64, causal=causal).kernel)
    assert "products overlap" in notes
    for schedule in SCHEDULES:
        out = np.zeros(expected.shape, np.float16)
        thread.run(kernel, [*inputs, out], schedule=schedule, target=TARGET, outputs=[3])
        compare(out, expected, bound)


def test_a_loop_with_one_product_stays_as_it_is() -> None:
    _, notes = lowered(kernels.gemm(128, 128, 128).kernel)
    assert "overlap" not in notes


def test_a_card_without_a_rate_for_the_dtype_is_planned_for() -> None:
    """Code for one family, figures of another's card: the T4 has no bfloat16."""
    target = Target.of("sm_90a/T4")
    kernel = chain(64, 64, 4, None, "exp", dtype="bfloat16").kernel
    assert run_passes(kernel, target).level == "thread"
