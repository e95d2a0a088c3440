"""What the planner decides for the kernels that benchmarks judge: roles, channels, order, meetings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import kernels
from tests.end_to_end.planned_attention import planned_attention
from tileworkbench.ir.instr import Sync
from tileworkbench.ir.node import walk
from tileworkbench.ir.planned import Role, Wait
from tileworkbench.ir.stmt import For
from tileworkbench.ir.text import show
from tileworkbench.pipeline import Step, run_passes
from tileworkbench.target import Target

KERNELS = {
    "add": lambda: kernels.add_2d(4096, 4096, 32, 128),
    "gemm": lambda: kernels.gemm(4096, 4096, 4096, BN=256, threads=256, out="float16", staged_out=True),
    "softmax": lambda: kernels.softmax(1024, 1024, 4),
    "attention": lambda: kernels.attention(1, 8, 1024, 64, causal=True),
}
TARGETS = ("sm_80", "sm_90a", "gfx942")


def planned(name: str, target: str) -> Step:
    steps: list[Step] = []
    run_passes(KERNELS[name]().kernel, Target.of(target), steps.append, fit_stages=True)
    return next(s for s in steps if s.name == "place_sync")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_plan(name: str, target: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}_{target}.plan", show(planned(name, target).after))


def test_hand_written_attention(golden: Callable[[str, str], None]) -> None:
    golden("attention_by_hand_sm_90a.plan", show(planned_attention(1, 8, 1024, 64)))


def test_gemm_main_loop_has_one_wait_and_no_block_barrier() -> None:
    """One channel carries A and B: a consumer's trip waits once, meets nobody."""
    kernel = planned("gemm", "sm_90a").after
    load, compute = kernel.body
    for role, waits in ((load, 0), (compute, 1)):
        loop = next(n for n in walk(role.body) if isinstance(n, For) and n.attrs)
        assert sum(isinstance(n, Wait) for n in walk(loop.body)) == waits
        assert not any(isinstance(n, Sync) for n in walk(loop.body))
    assert [c.depth for c in kernel.channels] == [3]


def test_a_loop_without_stages_has_no_load_role() -> None:
    """num_stages=0 asks for nothing to run ahead: blocks of few threads beside one another hide the copies."""
    for stages, names in ((0, ["main"]), (1, ["load", "compute"]), (2, ["load", "compute"])):
        kernel = run_passes(kernels.gemm(512, 512, 512, stages=stages).kernel, Target.of("sm_90a"))
        assert [r.name for r in kernel.body if isinstance(r, Role)] == names
        assert kernel.launch_threads == kernel.threads + (0 if stages == 0 else 128)
