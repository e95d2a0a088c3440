"""Variants by assumed facts: the fast one states what it needs, the general one is right without it."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests import kernels
from tests.end_to_end.cases import integers
from tileworkbench.codegen.emit import emit
from tileworkbench.ir.kernel import Kernel
from tileworkbench.pipeline import run_passes
from tileworkbench.simulate import thread
from tileworkbench.target import Target

TARGETS = ("sm_80", "sm_90a", "gfx942")


def columns_kernel() -> Kernel:
    """A GEMM whose row pitch is known at run time only."""
    return kernels.gemm(64, T.dynamic("n"), 96, BM=64, BN=64, BK=32).kernel


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("columns", "variant"), [(72, "fast"), (72, "general"), (70, "general"), (1, "general")])
def test_gemm_with_dynamic_columns(target: str, columns: int, variant: str) -> None:
    goal = Target.of(target)
    kernel = columns_kernel()
    kernel = run_passes(kernel.with_(attrs={**kernel.attrs, "variant": variant}), goal)
    rng = np.random.default_rng(0)
    a, b = integers(rng, (64, 96), "float16"), integers(rng, (96, columns), "float16")
    for schedule in ("eager", "latest", "random"):
        out = np.zeros((64, columns), np.float32)
        thread.run(kernel, [a, b, out], schedule=schedule, target=goal, outputs=[2])
        np.testing.assert_array_equal(out, a.astype(np.float64) @ b.astype(np.float64))


def test_the_fast_variant_says_what_it_assumes() -> None:
    goal = Target.of("sm_90a")
    fast = emit(run_passes(columns_kernel(), goal), goal)
    texts = [fact.text for fact in fast.facts]
    assert any("multiple of 8" in text and "n" in text for text in texts)
    assert sum("starts at a multiple of 16 bytes" in text for text in texts) == 3
    kernel = columns_kernel()
    general = emit(run_passes(kernel.with_(attrs={**kernel.attrs, "variant": "general"}), goal), goal)
    assert not general.facts
