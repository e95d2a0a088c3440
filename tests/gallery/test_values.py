"""Every kernel of the gallery at small sizes against NumPy: on the CPU target, on the thread machine, on a card."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gallery.entry import Entry, arguments, compare
from tests.gallery.registry import ENTRIES
from tileworkbench.codegen.emit import emit
from tileworkbench.ir.check import check
from tileworkbench.pipeline import Step, run_passes
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target, detect

HOPPER = any(found.driver and found.arch == "sm_90a" for found in detect())
SIMULATED = [entry for entry in ENTRIES if entry.simulated]
# The latest moment for copies to land finds a missing wait, the earliest a missing release.
SCHEDULES = ("eager", "latest")


def named(entry: Entry) -> str:
    return entry.name


@pytest.mark.parametrize("entry", SIMULATED, ids=named)
def test_on_the_cpu_target(entry: Entry) -> None:
    kernel, data = entry.kernel(entry.small), entry.data(**entry.small)
    args, _ = arguments(kernel, data)
    tile.run(kernel, args)
    compare(kernel, args, data, "the CPU target")


@pytest.mark.parametrize("entry", [entry for entry in SIMULATED if entry.threads], ids=named)
def test_on_the_thread_machine(entry: Entry) -> None:
    goal = Target.of("sm_90a")

    def verify(step: Step) -> None:
        check(step.after, target=goal)

    kernel, data = run_passes(entry.kernel(entry.small), goal, verify), entry.data(**entry.small)
    for schedule in SCHEDULES:
        args, undefined = arguments(kernel, data)
        thread.run(kernel, args, schedule=schedule, target=goal, outputs=undefined)
        compare(kernel, args, data, f"sm_90a, schedule {schedule}")


@pytest.mark.gpu
@pytest.mark.parametrize("entry", ENTRIES, ids=named)
def test_on_a_card(entry: Entry) -> None:
    if not HOPPER:
        pytest.skip("the gallery's builds for a card are those of capability 9.0")
    goal = Target.of("sm_90a")
    kernel, data = run_passes(entry.kernel(entry.small), goal), entry.data(**entry.small)
    args, _ = arguments(kernel, data)
    launch(kernel, goal, args)
    compare(kernel, args, data, "the card")


def launch(kernel: Any, goal: Target, args: list[Any]) -> None:
    """Builds and launches; NumPy arrays go to the card and come back."""
    from tileworkbench.runtime import nvrtc
    from tileworkbench.runtime.launch import Launcher

    source = emit(kernel, goal)
    Launcher([(source, nvrtc.build(source))])(*args)
