"""TMA ring, wgmma and TMA store between roles: right under every schedule, and each planted fault is found."""

from __future__ import annotations

import numpy as np
import pytest

from tileworkbench.errors import SimulationError
from tileworkbench.ir.expr import const
from tileworkbench.ir.instr import (
    BarArrive,
    BarInit,
    BarWait,
    CommitGroup,
    Fence,
    Sync,
    TmaLoad,
    TmaStore,
    WaitGroup,
    WgmmaFence,
)
from tileworkbench.ir.node import replace
from tileworkbench.simulate.thread import run

from .hopper import ring
from .kernels import find, swap, without

SCHEDULES = ("eager", "latest", "random")


def arguments(tiles=5):
    rng = np.random.default_rng(1)
    a = rng.integers(-3, 4, (64, 64 * tiles)).astype(np.float16)
    b = rng.integers(-3, 4, (64, 64 * tiles)).astype(np.float16)
    return a, b, np.zeros((64, 64), np.float16)


def faults(kernel, tiles=5):
    found = []
    for schedule in SCHEDULES:
        try:
            run(kernel, arguments(tiles), schedule=schedule)
        except SimulationError as error:
            found.append(error)
    return found


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("tiles,stages", [(1, 2), (5, 2), (4, 3), (3, 1)])
def test_right_kernel(schedule, tiles, stages):
    a, b, c = arguments(tiles)
    run(ring(tiles, stages), (a, b, c), schedule=schedule, seed=tiles)
    assert np.array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T)


CASES = {
    "no wgmma fence": (lambda k: without(k, find(k, WgmmaFence)), "wgmma_fence", "[wgmma_fence]"),
    "no wgmma wait": (lambda k: without(k, find(k, WaitGroup, engine_of="wgmma")), None, ""),
    "no wgmma commit": (lambda k: without(k, find(k, CommitGroup, engine_of="wgmma")), None, ""),
    "no full wait": (lambda k: without(k, find(k, BarWait, reason="stage full")), ("race", "undefined"), ""),
    "no empty wait": (lambda k: without(k, find(k, BarWait, reason="stage free")), None, ""),
    "no release": (lambda k: without(k, find(k, BarArrive, reason="stage read")), "deadlock", "128 of 128 arrivals"),
    "no proxy fence": (lambda k: without(k, find(k, Fence, kind="proxy_async")), "race", "[proxy_fence]"),
    "no sync before the store": (lambda k: without(k, find(k, Sync, who="role")), ("race", "undefined"), ""),
    "no init fence": (lambda k: without(k, find(k, Fence, kind="mbarrier_init")), "race", "[barrier_init]"),
    "no block sync": (lambda k: without(k, find(k, Sync, who="block")), None, "[barrier_init]"),
    "no store wait": (lambda k: without(k, find(k, WaitGroup, engine_of="bulk")), "in_flight", "the block ends"),
    "no store commit": (lambda k: without(k, find(k, CommitGroup, engine_of="bulk")), "in_flight", "the block ends"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_dropped(name):
    change, kind, text = CASES[name]
    found = faults(change(ring()))
    assert len(found) == 3
    for error in found:
        assert kind is None or error.kind in kind
        assert text in str(error) and error.loc is not None
    if isinstance(kind, tuple):  # what is missing shows as an order where the data have come, else as undefined
        assert any(error.kind == "race" for error in found)


def one(k, cls, nth=0, /, where=None, **changes):
    s = find(k, cls, nth, **(where or {}))
    return swap(k, s, replace(s, **changes))


def test_phase_and_bytes():
    k = ring()
    arrive = find(k, BarArrive, 0, reason="")
    for delta, kind, text in ((16, "deadlock", "16 bytes outstanding"), (-16, "bytes", "16 bytes more than phase 0")):
        found = faults(swap(k, arrive, replace(arrive, bytes=arrive.bytes + delta)))
        assert len(found) == 3
        assert all(e.kind == kind and text in str(e) for e in found), [str(e) for e in found]
    wait = find(k, BarWait, reason="stage full")
    found = faults(swap(k, wait, replace(wait, parity=wait.parity + 1)))
    assert len(found) == 3 and all(e.kind == "phase" for e in found)
    found = faults(swap(k, wait, replace(wait, parity=wait.parity + 1, count=None)))
    assert len(found) == 3
    for delta in (1, -1):
        init = find(k, BarInit, 2)
        found = faults(swap(k, init, replace(init, count=init.count + delta)))
        assert len(found) == 3 and {e.kind for e in found} <= {"deadlock", "barrier"}


def test_slip_of_two_phases():
    """A producer that runs two phases ahead passes the parity test; the absolute count tells."""
    k = ring(tiles=9, stages=1)
    wait = find(k, BarWait, reason="stage free")
    bad = swap(k, wait, replace(wait, parity=const(1), count=None))
    assert len(faults(bad, 9)) == 3
    late = find(k, BarWait, reason="stage full")
    bad = swap(k, late, replace(late, count=late.count + 2))
    assert {e.kind for e in faults(bad, 9)} <= {"phase", "deadlock"} and len(faults(bad, 9)) == 3


def test_both_lines_are_named():
    k = ring()
    fence = find(k, Fence, kind="proxy_async")
    error = faults(without(k, fence))[0]
    store = find(k, TmaStore)
    assert error.loc == store.loc and error.other is not None and error.other.line < store.loc.line
    assert "StoreMem(Cs" in str(error) and "Cs[" in str(error)


def test_all_threads_may_not_issue():
    k = ring()
    load = find(k, TmaLoad)
    from tileworkbench.ir.instr import Elect

    elect = find(k, Elect)
    found = faults(swap(k, elect, elect.body))
    assert len(found) == 3 and load.loc is not None
