"""Generated text builds for every architecture without a GPU, does not spill, and holds the instructions it should."""

from __future__ import annotations

import shutil
from functools import cache

import pytest

from tests import kernels
from tileworkbench.codegen.emit import emit
from tileworkbench.codegen.source import Source
from tileworkbench.pipeline import run_passes
from tileworkbench.runtime import clang, disassemble, nvrtc
from tileworkbench.target import Target

pytest.importorskip("cuda.bindings", reason="NVRTC is not installed")

KERNELS = {
    "add_1d": lambda: kernels.add_1d(100_000),
    "add_2d": lambda: kernels.add_2d(4096, 4096, 32, 128),
    "add_2d_tail": lambda: kernels.add_2d(1000, 1001),
    "gemm": lambda: kernels.gemm(4096, 4096, 4096),
    "gemm_nt": lambda: kernels.gemm(512, 512, 512, trans_b=True, dtype="bfloat16", out="bfloat16"),
    "gemm_dynamic": lambda: kernels.gemm(kernels.T.dynamic("m"), 512, 512, threads=256),
    "softmax": lambda: kernels.softmax(1024, 1024, 4),
    "attention": lambda: kernels.attention(1, 8, 1024, 64),
    "attention_causal": lambda: kernels.attention(1, 8, 1024, 64, causal=True),
}
TARGETS = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a", "sm_80/H200")
SERIALISED = ("C7504", "C7508", *(f"C75{n:02}" for n in range(9, 16)))


@cache
def source(kernel: str, target: str) -> Source:
    goal = Target.of(target)
    return emit(run_passes(KERNELS[kernel]().kernel, goal, fit_stages=True), goal)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_builds(kernel: str, target: str) -> None:
    if target == "sm_75" and kernel == "gemm_nt":
        pytest.skip("bf16 has no warp product on sm_75; the multiply-add form spills its way through, by design slow")
    built = nvrtc.build(source(kernel, target))
    assert built.code
    assert built.spills == 0
    assert not [w for w in built.warnings if any(code in w for code in SERIALISED)]


@pytest.mark.parametrize(
    ("kernel", "target", "wanted"),
    [
        ("gemm", "sm_90a", ("HGMMA", "UTMALDG")),
        ("gemm", "sm_80", ("HMMA", "LDGSTS", "LDSM")),
        ("gemm", "sm_75", ("HMMA", "LDSM")),
        ("gemm", "sm_120a", ("HMMA", "UTMALDG")),
        ("add_2d", "sm_90a", ("UTMALDG", "STG.E.128")),
        ("attention", "sm_90a", ("HGMMA", "UTMALDG", "MUFU.EX2")),
    ],
)
def test_instructions(kernel: str, target: str, wanted: tuple[str, ...]) -> None:
    lines = disassemble.sass(nvrtc.build(source(kernel, target)))
    text = "\n".join(line.text for line in lines)
    assert not [w for w in wanted if w not in text]


@pytest.mark.parametrize("target", ("gfx90a", "gfx942", "gfx950"))
@pytest.mark.parametrize("kernel", ("add_2d", "gemm", "softmax", "attention"))
def test_hip(kernel: str, target: str) -> None:
    if not any(shutil.which(f"clang-{n}") for n in range(20, 26)):
        pytest.skip("no clang that knows the target")
    built = clang.build(source(kernel, target))
    if kernel in ("gemm", "attention"):
        assert b"v_mfma" in built.code
