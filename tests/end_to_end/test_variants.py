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


def test_rows_that_stay_aligned_by_themselves_need_no_assumption() -> None:
    """However many rows a sequence has, each of 64 elements starts at a multiple of 128 bytes."""
    m = T.dynamic("m")

    @T.prim_func
    def kernel(A: T.Tensor((2, m, 64), "float16"), B: T.Tensor((2, m, 64), "float16")):
        with T.Kernel(T.ceildiv(m, 32), 2, threads=128) as (bx, b):
            tile = T.alloc_shared((32, 64), "float16")
            T.copy(A[b, bx * 32 : bx * 32 + 32, :], tile)
            T.copy(tile, B[b, bx * 32 : bx * 32 + 32, :])

    for target in TARGETS:
        goal = Target.of(target)
        lowered = run_passes(kernel.kernel, goal)
        assert not [fact.text for fact in lowered.assumed if "is a multiple of" in fact.text]
        a, out = np.arange(2 * 41 * 64).reshape(2, 41, 64).astype("float16"), np.zeros((2, 41, 64), "float16")
        thread.run(lowered, [a, out], target=goal, outputs=[1])
        np.testing.assert_array_equal(out, a)
        chosen = {d.chosen for d in lowered.decisions}
        assert target != "sm_90a" or any("tma" in c.lower() or "copy engine" in c for c in chosen), chosen


def test_offsets_of_large_tensors_have_64_bits() -> None:
    """2^32 elements: an int32 offset would wrap in the upper half."""
    goal = Target.of("sm_90a")
    text = emit(run_passes(kernels.add_1d(2**32, dtype="float16").kernel, goal), goal).text
    assert "(long long)" in text
    assert "(long long)" not in emit(run_passes(kernels.add_1d(2**20).kernel, goal), goal).text


def test_the_fast_variant_fits_32_bits_and_says_so() -> None:
    goal = Target.of("sm_90a")
    kernel = kernels.add_1d(T.dynamic("n")).kernel
    fast = emit(run_passes(kernel, goal), goal)
    assert sum("fewer than 2^31 elements" in fact.text for fact in fast.facts) == 3
    assert "(long long)" not in fast.text
    general = emit(run_passes(kernel.with_(attrs={**kernel.attrs, "variant": "general"}), goal), goal)
    assert "(long long)" in general.text


@pytest.mark.gpu
def test_large_tensors_on_a_card() -> None:
    torch = pytest.importorskip("torch")
    from tileworkbench.runtime import nvrtc
    from tileworkbench.runtime.launch import Launcher

    n = 2**31 + 2**20 + 3
    goal = Target.of("sm_90a")
    source = emit(run_passes(kernels.add_1d(n, block=1024, dtype="int8").kernel, goal), goal)
    a = torch.randint(-50, 50, (n,), dtype=torch.int8, device="cuda")
    b = torch.randint(-50, 50, (n,), dtype=torch.int8, device="cuda")
    c = torch.full((n,), 111, dtype=torch.int8, device="cuda")
    Launcher([(source, nvrtc.build(source))])(a, b, c)
    assert torch.equal(c, a + b)
