"""The cp.async + ldmatrix + mma kernel: right under every schedule, and each planted fault is found."""

from __future__ import annotations

import numpy as np
import pytest

from tileworkbench.errors import SimulationError
from tileworkbench.ir.expr import const
from tileworkbench.ir.instr import CommitGroup, CopyAsync, Sync, WaitGroup
from tileworkbench.ir.node import replace
from tileworkbench.simulate.thread import run

from .kernels import ampere_gemm, find, swap, without

SCHEDULES = ("eager", "latest", "random")


def arguments(m=64, n=64, k=64):
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (m, k)).astype(np.float16)
    b = rng.integers(-8, 9, (k, n)).astype(np.float16)
    return a, b, np.zeros((m, n), np.float32)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("stages", [2, 3])
def test_right_kernel(schedule, stages):
    a, b, c = arguments(k=128)
    done = run(ampere_gemm(k=128, stages=stages), (a, b, c), schedule=schedule, seed=3)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    assert done.defined["C"].all() and done.outputs[0] is c


def all_faults(kernel):
    found = []
    for schedule in SCHEDULES:
        try:
            run(kernel, arguments(k=128), schedule=schedule)
        except SimulationError as error:
            found.append(error)
    return found


def test_dropped_sync_is_a_race_between_both_lines():
    k = ampere_gemm(k=128)
    bad = without(k, find(k, Sync))
    error = all_faults(bad)[0]
    assert error.kind == "race" and "[copy_wait]" in str(error)
    assert error.loc is not None and error.other is not None and error.loc != error.other


@pytest.mark.parametrize("change", ["drop wait", "pending up", "drop commit"])
def test_wait_faults(change):
    k = ampere_gemm(k=128, stages=3)
    w = find(k, WaitGroup)
    bad = {
        "drop wait": lambda: without(k, w),
        "pending up": lambda: swap(k, w, replace(w, pending=w.pending + 1)),
        "drop commit": lambda: without(k, find(k, CommitGroup, 0)),
    }[change]()
    errors = all_faults(bad)
    assert len(errors) == 3
    for error in errors:
        assert error.kind == "race" and "in flight" in str(error) and error.other is not None


def test_sources_with_valid_bytes_are_zero_filled():
    k = ampere_gemm()
    first = find(k, CopyAsync)
    bad = swap(k, first, replace(first, valid=const(8)))
    a, b, c = arguments()
    run(bad, (a, b, c))
    a0 = a.copy()
    for i in range(128):
        a0[i // 4, (i % 4) * 8 + 4 : (i % 4) * 8 + 8] = 0
    assert np.array_equal(c, a0.astype(np.float64) @ b.astype(np.float64))
