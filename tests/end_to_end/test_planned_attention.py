"""The hand-written schedule is right on both machines' terms, and builds without serialised products or spills."""

from __future__ import annotations

import numpy as np
import pytest

from tests.end_to_end.cases import attention_case, compare
from tests.end_to_end.planned_attention import planned_attention
from tileworkbench.codegen.emit import emit
from tileworkbench.ir.check import check
from tileworkbench.ir.kernel import Kernel
from tileworkbench.pipeline import PASSES
from tileworkbench.runtime import nvrtc
from tileworkbench.simulate import thread
from tileworkbench.target import Target

TARGET = Target.of("sm_90a")


def lowered(kernel: Kernel) -> Kernel:
    names = [name for name, _, _ in PASSES]
    for _, apply, _ in PASSES[names.index("schedule") :]:
        kernel = apply(kernel, TARGET)
        check(kernel, target=TARGET)
    return kernel


@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("schedule", ("eager", "latest", "random"))
def test_thread_machine(schedule: str, causal: bool) -> None:
    _, inputs, truth, bound = attention_case("", 1, 1, 256, 64, causal).make()
    out = np.zeros(truth.shape, np.float16)
    kernel = lowered(planned_attention(1, 1, 256, 64, causal=causal))
    thread.run(kernel, [*inputs, out], schedule=schedule, target=TARGET, outputs=[3])
    compare(out, truth, bound)


def test_builds() -> None:
    kernel = lowered(planned_attention(4, 32, 4096, 128, BM=128, BN=128, threads=256))
    built = nvrtc.build(emit(kernel, TARGET))
    assert built.spills == 0
    assert not built.serialised
