"""Faults planted in lowered kernels: the thread machine finds all that touch order, and most of the others.

A survivor is a gap in the machine, redundancy of the lowering, or equivalent to the right kernel; those are listed.
"""

from __future__ import annotations

import pytest

from tileworkbench.simulate.thread.mutate import Mutant, caught

from .planted import CASES, Planted, planted

# What orders threads, engines and copies.
ORDER = (
    "drop", "narrow", "arrive", "threads", "pending", "reads only", "count", "bytes", "parity", "cursor", "election",
)  # fmt: skip
SAMPLE = 10

_COVERED = "the first wait of the ring that follows waits for this group too, and meets"
_BARRIER = "the thread that has waited for the store arrives on the loads' barrier, and all wait on that"
# (case, kind, the user's line): why the machine must not tell the mutant from the right kernel.
EQUIVALENT = {
    ("chained sm_80", "narrow Sync", "T.copy(Q[r * m, 0], Q_shared)"): _COVERED,
    ("chained sm_80", "drop CommitGroup", "T.copy(Q[r * m, 0], Q_shared)"): _COVERED,
    ("chained sm_80", "drop WaitGroup", "T.copy(Q[r * m, 0], Q_shared)"): _COVERED,
    ("chained sm_80", "pending", "T.copy(Q[r * m, 0], Q_shared)"): _COVERED,
    ("added sm_90a", "drop Sync", "for i, j in T.Parallel(32, 64):"): _BARRIER,
    ("added sm_90a", "narrow Sync", "for i, j in T.Parallel(32, 64):"): _BARRIER,
    ("added sm_90a", "election", ""): "a lane that stored nothing has nothing to wait for",
}
ANYWHERE = {
    "drop SetRegs": "registers are handed over for speed; the checks of the IR hold their sum",
}


def survives(mutant: Mutant, right: Planted) -> bool:
    return caught(mutant.kernel, right.arguments, (right.truth,)) is None


def key(case: str, mutant: Mutant) -> tuple[str, str, str]:
    return case, mutant.kind, mutant.loc.source_line().strip() if mutant.loc else ""


def explained(case: str, mutant: Mutant) -> bool:
    """A mutant that waits for more, or one of the listed ones."""
    return mutant.stricter or mutant.kind in ANYWHERE or key(case, mutant) in EQUIVALENT


@pytest.mark.parametrize("case", CASES)
def test_every_fault_of_order_is_found(case: str) -> None:
    right = planted(case)
    alive = [m for m in right.mutants(ORDER) if survives(m, right)]
    assert not [f"{m.kind}: {m.description}" for m in alive if not explained(case, m)]
    listed = {k for k in EQUIVALENT if k[0] == case}
    assert not listed - {key(case, m) for m in alive}, "a listed mutant is found now: take it off the list"


def test_there_are_many_faults_of_order() -> None:
    """The figure is of enough faults of enough kinds."""
    made = [m for case in CASES for m in planted(case).mutants(ORDER)]
    assert len(made) >= 150
    assert len({m.kind for m in made}) >= 15


def test_most_other_faults_are_found() -> None:
    """Addresses, predicates, trip counts and casts, evenly sampled. Terms that are 0 in so small a kernel (the block's
    part of an address with one block, an unrolled loop of one trip) survive, so that the score stays below 100 %."""
    found, total = 0, 0
    for case in CASES:
        right = planted(case)
        others = [m for m in right.mutants() if not m.kind.startswith(ORDER)]
        for m in others[:: max(1, len(others) // SAMPLE)]:
            found += not survives(m, right)
            total += 1
    print(f"{found} of {total} other planted faults found")
    assert found >= 0.8 * total
