"""Every case on a card: its own instruction families and, on the same card, those of sm_80; poisoned outputs."""

from __future__ import annotations

import numpy as np
import pytest

from tests import kernels
from tests.end_to_end.cases import (
    Case,
    add_case,
    attention_case,
    compare,
    gemm_case,
    reduce_case,
    small_cases,
    softmax_case,
)
from tests.end_to_end.planned_attention import planned_attention
from tileworkbench.codegen.emit import emit
from tileworkbench.pipeline import PASSES, run_passes
from tileworkbench.runtime import nvrtc
from tileworkbench.runtime.launch import Launcher
from tileworkbench.target import Target

pytestmark = pytest.mark.gpu
TARGETS = ("sm_90a", "sm_80/H200")
LARGE = [
    add_case("add 1-D large", lambda: kernels.add_1d(1_000_003), (1_000_003,), "float32"),
    add_case("add 2-D large fp16", lambda: kernels.add_2d(1000, 1048, dtype="float16"), (1000, 1048), "float16"),
    add_case("add 2-D large odd", lambda: kernels.add_2d(513, 1027), (513, 1027), "float32"),
    *[
        gemm_case(f"gemm large {ta:d}{tb:d} {dtype}", 384, 640, 512, trans_a=ta, trans_b=tb, dtype=dtype, out="float32")
        for ta in (False, True) for tb in (False, True) for dtype in ("float16", "bfloat16")
    ],
    *[gemm_case(f"gemm large {s} stages", 256, 256, 1024, stages=s, BK=32) for s in (1, 2, 3, 4)],
    gemm_case("gemm large tail", 500, 392, 328),
    gemm_case("gemm large odd", 501, 393, 331),
    gemm_case("gemm two warpgroups large", 512, 512, 512, BM=128, BN=256, threads=256, panel=4),
    gemm_case("gemm dynamic large", 777, 512, 256, symbolic=True, threads=256),
    softmax_case("softmax large", 1000, 1024, BM=4),
    reduce_case("reduce sum large 0", "sum", 128, 256, 0),
    reduce_case("reduce max large 1", "max", 128, 256, 1),
    attention_case("attention large", 2, 4, 512, 128, False, BM=128, BN=64, threads=256),
    attention_case("attention causal large", 2, 4, 512, 64, True, BM=128, BN=128, threads=256),
]  # fmt: skip


def run(kernel, target: Target, inputs, truth, bound) -> None:  # type: ignore[no-untyped-def]
    torch = pytest.importorskip("torch")
    source = emit(kernel, target)
    launcher = Launcher([(source, nvrtc.build(source))])
    tensors = [to_torch(torch, a) for a in inputs]
    name = kernel.params[-1].dtype.name
    out = torch.full(truth.shape, float("nan") if "float" in name else -77, dtype=getattr(torch, name), device="cuda")
    launcher(*tensors, out)
    torch.cuda.synchronize()
    got = out.double().cpu().numpy()
    exact = np.isscalar(bound) and bound == 0
    compare(got, torch.from_numpy(truth).to(out.dtype).double().numpy() if exact else truth, bound)


def to_torch(torch, array: np.ndarray):  # type: ignore[no-untyped-def]
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16).cuda()
    return torch.from_numpy(array).cuda()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", small_cases() + LARGE, ids=lambda c: c.name)
def test_case(case: Case, target: str) -> None:
    func, inputs, truth, bound = case.make()
    goal = Target.of(target)
    run(run_passes(func.kernel, goal), goal, inputs, truth, bound)


@pytest.mark.parametrize("causal", (False, True))
def test_planned_attention(causal: bool) -> None:
    _, inputs, truth, bound = attention_case("", 2, 4, 512, 128, causal).make()
    goal = Target.of("sm_90a")
    kernel = planned_attention(2, 4, 512, 128, BM=128, BN=128, threads=256, causal=causal)
    names = [name for name, _, _ in PASSES]
    for _, apply, _ in PASSES[names.index("schedule") :]:
        kernel = apply(kernel, goal)
    run(kernel, goal, inputs, truth, bound)
