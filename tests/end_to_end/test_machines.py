"""Every case on the tile machine and, lowered for three targets, on the thread machine under three schedules."""

from __future__ import annotations

import numpy as np
import pytest

from tests.end_to_end.cases import CONTAINER, Case, compare, small_cases
from tileworkbench.ir.check import check
from tileworkbench.pipeline import Step, run_passes
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

CASES = small_cases()
TARGETS = ("sm_80", "sm_90a", "gfx942")


def output(kernel, truth):
    return np.zeros(truth.shape, CONTAINER[kernel.params[-1].dtype.name])


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_tile_machine(case: Case) -> None:
    func, inputs, truth, bound = case.make()
    kernel = func.kernel
    out = output(kernel, truth)
    tile.run(kernel, [*inputs, out])
    compare(out, truth, bound)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_thread_machine(case: Case, target: str) -> None:
    func, inputs, truth, bound = case.make()
    goal = Target.of(target)

    def verify(step: Step) -> None:
        check(step.after, target=goal)

    kernel = run_passes(func.kernel, goal, verify)
    for schedule in ("eager", "latest", "random"):
        out = output(kernel, truth)
        thread.run(kernel, [*inputs, out], schedule=schedule, target=goal, outputs=[len(inputs)])
        compare(out, truth, bound)
