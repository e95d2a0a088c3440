"""Every kernel of the gallery at realistic sizes: read, lowered and built for Hopper and Ampere without a GPU."""

from __future__ import annotations

import pytest

from tests.gallery.entry import Entry
from tests.gallery.registry import ENTRIES
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import TileError
from tileworkbench.ir.check import check
from tileworkbench.pipeline import Step, run_passes
from tileworkbench.runtime import nvrtc
from tileworkbench.target import Target

pytest.importorskip("cuda.bindings", reason="NVRTC is not installed")


def build(entry: Entry, target: str) -> list[bytes]:
    goal = Target.of(target)

    def verify(step: Step) -> None:
        check(step.after, target=goal)

    kernels = entry.kernels(entry.real or entry.small)
    lowered = [run_passes(kernel, goal, verify, fit_stages=target != "sm_90a") for kernel in kernels]
    return [nvrtc.build(emit(kernel, goal)).code for kernel in lowered]


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_builds(entry: Entry, target: str) -> None:
    if not entry.hopper or target == "sm_90a":
        assert all(build(entry, target))
        return
    with pytest.raises(TileError) as refused:
        build(entry, target)
    assert refused.value.loc is not None and "gallery" in refused.value.loc.file
    assert target in str(refused.value) and refused.value.fix
