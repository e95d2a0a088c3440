"""What a compiled kernel tells of itself, without a card."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import tileworkbench as tw
from tileworkbench.errors import MissingDependency, OptionError, TargetError
from tileworkbench.target.detect import detect

from .kernels import copy_kernel, gemm

built = pytest.mark.skipif(importlib.util.find_spec("cuda.bindings") is None, reason="needs cuda-bindings and NVRTC")


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    """Made from nothing: with the user's cache another test may already have left its text there."""
    with tw.options(cache_dir=tmp_path_factory.mktemp("cache")):
        return tw.compile(gemm(128, 128, 64), out_idx=[-1], target="sm_90a")


def test_text_plan_and_trace(card):
    assert "__global__" in card.source and card.get_kernel_source() == card.source
    chosen = {d.op.split("(")[0]: d.chosen for d in card.plan.decisions}
    assert chosen["gemm"].startswith("wgmma") and chosen["copy"]
    assert {r.name for r in card.plan.roles} >= {"load", "compute"}
    assert [c.depth for c in card.plan.channels] == [2]
    assert any("multiple of 16 bytes" in text for text in card.plan.assumed)
    names = [step.name for step in card.trace]
    assert names[0] == "check" and "lower" in names
    step = card.trace["lower"]
    assert step.changed and "T.gemm" in card.trace[0].before and "T.gemm" not in step.after
    assert set(card.timing.stages) == {"read", "passes", "emit", "build"}


@built
def test_figures_of_the_build(card):
    assert 32 <= card.registers <= 255 and card.spills == 0 and card.warnings == ()
    assert "wgmma" in card.ptx
    # Two versions of A (64 × 32) and B (32 × 64) in fp16, and their barriers.
    assert card.shared_bytes >= 2 * 2 * (64 * 32 + 32 * 64)
    assert card.occupancy.blocks >= 1
    assert "HGMMA" in card.sass and "UTMALDG" in card.sass


def test_the_roofline_counts_the_product(card):
    bound = card.roofline()
    device = card.target.device
    nbytes = 2 * (128 * 64 + 64 * 128) + 4 * 128 * 128
    assert bound.memory_us == pytest.approx(nbytes / device.bandwidth_gbs / 1e3)
    assert bound.compute_us == pytest.approx(2 * 128 * 128 * 64 / device.peak("float16") / 1e6)


def test_the_second_build_comes_from_the_disk(tmp_path):
    if importlib.util.find_spec("cuda.bindings") is None:
        pytest.skip("needs NVRTC")
    with tw.options(cache_dir=tmp_path):
        first = tw.compile(copy_kernel(24, 40), target="sm_80")
        second = tw.compile(copy_kernel(24, 40), target="sm_80")
    assert not first.timing.cached and second.timing.cached
    assert first.variant.binary.code == second.variant.binary.code


def test_without_a_compiler_the_text_is_there_and_the_rest_is_named(monkeypatch):
    def gone(*_):
        raise MissingDependency("NVRTC is not installed", fix="pip install 'tileworkbench[nvrtc]'")

    monkeypatch.setattr("tileworkbench.runtime.build.build", gone)
    kernel = tw.compile(copy_kernel(16, 16), target="sm_90a")
    assert "__global__" in kernel.source and kernel.plan.assumed
    for read in (lambda: kernel.ptx, lambda: kernel.registers, lambda: kernel.sass, lambda: kernel(1, 2)):
        with pytest.raises(MissingDependency, match="NVRTC") as caught:
            read()
        assert "pip install" in caught.value.fix


@pytest.mark.skipif(any(f.arch.startswith("sm_") for f in detect()), reason="there is a card")
def test_a_call_without_a_card_says_so_at_the_kernel(card):
    a = np.zeros((128, 64), "float16")
    with pytest.raises(MissingDependency, match="driver") as caught:
        card(a, np.zeros((64, 128), "float16"))
    assert caught.value.loc is not None and "cpu" in caught.value.fix


def test_the_cpu_target_has_no_registers():
    kernel = tw.compile(copy_kernel(16, 16), target="cpu")
    assert "T.Kernel" in kernel.source and kernel.shared_bytes == 0 and kernel.plan.decisions == ()
    with pytest.raises(TargetError, match="registers"):
        kernel.registers


def test_the_variants_behind_the_first_assume_less():
    kernel = tw.compile(copy_kernel(16, 16), target="sm_90a")
    if kernel.variant.binary is None:
        pytest.skip("needs NVRTC")
    assert kernel.variant.source.facts
    aligned, binary = kernel._general(True)
    assert [fact.text for fact in aligned.facts if "starts at" not in fact.text] == [] and binary.code
    general, binary = kernel._general(False)
    assert general.facts == () and binary.code


def test_settings():
    fast = tw.compile(copy_kernel(16, 16), target="sm_80", pass_configs={"tl.enable_fast_math": True})
    assert dict(fast.variant.source.options)["fast_math"] == "1"
    with pytest.raises(OptionError, match="--frobnicate"):
        tw.compile(copy_kernel(16, 16), target="cpu", compile_flags=["--frobnicate"])
    with pytest.raises(OptionError, match="execution_backend"):
        tw.compile(copy_kernel(16, 16), target="cpu", execution_backend="tvmm")
    with pytest.raises(TargetError, match="sm_91"):
        tw.compile(copy_kernel(16, 16), target="sm_91")


def test_do_bench_on_the_cpu_target():
    profiler = tw.compile(copy_kernel(16, 16), target="cpu").get_profiler()
    assert profiler.do_bench(warmup=0, rep=1) > 0
    low, high = profiler.do_bench(warmup=0, rep=1, quantiles=[0.1, 0.9])
    assert 0 < low <= high
    with pytest.raises(OptionError, match="return_mode"):
        profiler.do_bench(return_mode="mode")


def test_a_kernel_for_amd_is_read_and_checked_but_not_launched():
    kernel = tw.compile(gemm(64, 64, 32), out_idx=[-1], target="gfx942")
    assert any(d.chosen.startswith("mfma") for d in kernel.plan.decisions)
    assert tw.check(kernel, lambda a, b: a @ b).ok
    with pytest.raises(MissingDependency, match="gfx942") as caught:
        kernel(np.zeros((64, 32), "float16"), np.zeros((32, 64), "float16"))
    assert "cpu" in caught.value.fix
    with pytest.raises((TargetError, MissingDependency)):
        kernel.ptx
