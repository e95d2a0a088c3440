"""Planted faults: every synchronisation fault of the two large kernels is found; the enumeration is what it says."""

from __future__ import annotations

import numpy as np
import pytest

from tileworkbench.ir.instr import BarWait, CopyAsync, Sync
from tileworkbench.ir.node import walk
from tileworkbench.simulate.thread.mutate import caught, mutants, sites

from .hopper import ring
from .kernels import ampere_gemm

SYNCHRONISATION = (
    "drop", "narrow", "arrive", "threads", "pending", "count", "bytes", "parity", "cursor", "election", "trips", "zero",
)  # fmt: skip
HOPPER, AMPERE = ring(4, 2), ampere_gemm(k=96, stages=3)


def hopper_arguments():
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, (64, 256)).astype(np.float16) for _ in range(2))
    return a, b, np.zeros((64, 64), np.float16)


def ampere_arguments():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-8, 9, (64, 96)).astype(np.float16), rng.integers(-8, 9, (96, 64)).astype(np.float16)
    return a, b, np.zeros((64, 64), np.float32)


def truth(arguments):
    a, b, c = (x.astype(np.float64) for x in arguments())
    return (a @ (b if b.shape[0] == a.shape[1] and b.shape[0] != c.shape[0] else b.T),)


def test_right_kernels_are_not_caught():
    assert caught(HOPPER, hopper_arguments, truth(hopper_arguments)) is None
    assert caught(AMPERE, ampere_arguments, truth(ampere_arguments)) is None


def cases(kernel, *kinds):
    return [pytest.param(m, id=m.description) for m in mutants(kernel, kinds)]


@pytest.mark.parametrize("mutant", cases(HOPPER, *SYNCHRONISATION))
def test_hopper_faults(mutant):
    assert caught(mutant.kernel, hopper_arguments, truth(hopper_arguments)) is not None


@pytest.mark.parametrize("mutant", cases(AMPERE, *SYNCHRONISATION))
def test_ampere_faults(mutant):
    found = caught(mutant.kernel, ampere_arguments, truth(ampere_arguments))
    assert (found is None) == mutant.stricter


@pytest.mark.parametrize("mutant", cases(AMPERE, "offset")[::9])
def test_offsets(mutant):
    assert caught(mutant.kernel, ampere_arguments, truth(ampere_arguments), ("eager",)) is not None


def test_the_enumeration():
    """One site a place, also where one node stands at several; each mutant differs at its place alone."""
    count = sum(isinstance(n, CopyAsync) for _, n, _ in sites(AMPERE.body))
    assert count == sum(isinstance(n, CopyAsync) for n in walk(AMPERE.body))
    syncs = list(mutants(AMPERE, ["drop Sync"]))
    assert len(syncs) == 1 and not any(isinstance(n, Sync) for n in walk(syncs[0].kernel.body))
    flipped = list(mutants(HOPPER, ["parity"]))
    assert len(flipped) == 2
    for m in flipped:
        waits = [n for n in walk(m.kernel.body) if isinstance(n, BarWait)]
        assert sum(w.count is None for w in waits) == 1
    assert len({m.description for m in mutants(AMPERE)}) > 50
