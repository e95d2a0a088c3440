"""Every kernel of the gallery at small sizes against NumPy: on the CPU target, on the thread machine, on a card."""

from __future__ import annotations

import pytest

from tests.gallery.entry import Entry, arguments, compare, undefined
from tests.gallery.registry import ENTRIES
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import TileError
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
    kernels, data = entry.kernels(entry.small), entry.data(**entry.small)
    args = arguments(kernels, data)
    for kernel in kernels:
        tile.run(kernel, [args[parameter.name] for parameter in kernel.params])
    compare(args, data, "the CPU target")


@pytest.mark.parametrize("entry", SIMULATED, ids=named)
def test_on_the_thread_machine(entry: Entry) -> None:
    goal = Target.of("sm_90a")

    def verify(step: Step) -> None:
        check(step.after, target=goal)

    tiles, data = entry.kernels(entry.small), entry.data(**entry.small)
    kernels = [run_passes(kernel, goal, verify) for kernel in tiles]
    for schedule in SCHEDULES:
        args = arguments(kernels, data)
        for kernel in kernels:
            made = undefined(kernel, data) if kernel is kernels[0] else []
            ordered = [args[parameter.name] for parameter in kernel.params]
            thread.run(kernel, ordered, schedule=schedule, target=goal, outputs=made)
        compare(args, data, f"sm_90a, schedule {schedule}")


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if not entry.simulated], ids=named)
def test_what_needs_a_card_is_refused_with_its_place(entry: Entry) -> None:
    kernels, data = entry.kernels(entry.small), entry.data(**entry.small)
    args = arguments(kernels, data)
    with pytest.raises(TileError) as refused:
        for kernel in kernels:
            tile.run(kernel, [args[parameter.name] for parameter in kernel.params])
    assert refused.value.loc is not None and "gallery" in refused.value.loc.file and refused.value.fix


@pytest.mark.gpu
@pytest.mark.parametrize("entry", ENTRIES, ids=named)
def test_on_a_card(entry: Entry) -> None:
    if not HOPPER:
        pytest.skip("the gallery's builds for a card are those of capability 9.0")
    from tileworkbench.runtime import nvrtc
    from tileworkbench.runtime.launch import Launcher

    goal = Target.of("sm_90a")
    kernels, data = [run_passes(kernel, goal) for kernel in entry.kernels(entry.small)], entry.data(**entry.small)
    if not data.outputs:
        pytest.skip("its arguments are addresses on a card")
    args = arguments(kernels, data)
    for kernel in kernels:
        source = emit(kernel, goal)
        Launcher([(source, nvrtc.build(source))])(*[args[parameter.name] for parameter in kernel.params])
    compare(args, data, "the card")
