"""Random programs of permuted reads, writes and barriers: the machine reports a race exactly where a pairwise search
over all accesses finds two that conflict without a barrier between them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tileworkbench.errors import SimulationError
from tileworkbench.ir.expr import Expr
from tileworkbench.ir.instr import LoadMem, StoreMem, Sync
from tileworkbench.simulate.thread import run

from .kernels import TX, addr, kernel, put, reg, regs, shared, tensor

THREADS, WARP = 96, 32


def program(seed):
    """A list of steps: ("sync", who), or ("read" | "write", offsets by thread, their expression)."""
    rng = random.Random(seed)
    steps = []
    for _ in range(rng.randint(3, 7)):
        kind = rng.choice(["read", "write", "write", "sync", "sync"])
        if kind == "sync":
            steps.append(("sync", rng.choice(["warp", "block", "block"])))
            continue
        turn, flip = rng.choice([0, 0, 1, 16, 32, 40]), rng.choice([0, 0, 1, 8, 31])
        index: Expr = (TX ^ flip) + turn
        steps.append((kind, [((t ^ flip) + turn) for t in range(THREADS)], index))
    return steps


def races(steps):
    """By definition: two accesses of one element by different threads, one a write, and no barrier that both take part
    in between."""
    for j, later in enumerate(steps):
        if later[0] == "sync":
            continue
        for i in range(j):
            earlier = steps[i]
            if earlier[0] == "sync" or earlier[0] == later[0] == "read":
                continue
            between = [s[1] for s in steps[i:j] if s[0] == "sync"]
            if "block" in between:
                continue
            holder = {offset: t for t, offset in enumerate(earlier[1])}
            for t, offset in enumerate(later[1]):
                other = holder.get(offset, t)
                if other != t and not (other // WARP == t // WARP and "warp" in between):
                    return True
    return False


def build(steps):
    s, r = shared("s", 256, "int32"), regs("r", 1, "int32")
    y = tensor("y", (THREADS,), "int32")
    body = [put(r, 0, 0)]
    for part in range(3):  # every element holds something first
        body.append(StoreMem(addr(s, TX + part * 64), reg(r), pred=TX < 64))
    body.append(Sync("block"))
    for step in steps:
        if step[0] == "sync":
            body.append(Sync(step[1]))
        elif step[0] == "write":
            body += [put(r, 0, TX), StoreMem(addr(s, step[2]), reg(r))]
        else:
            body.append(LoadMem(reg(r), addr(s, step[2])))
    return kernel((y,), body, THREADS, (s, r))


@pytest.mark.parametrize("schedule", ["eager", "latest", "random"])
def test_reports_are_exactly_the_races(schedule):
    found = [0, 0]
    for seed in range(120):
        steps = program(seed)
        wanted = races(steps)
        try:
            run(build(steps), (np.zeros(THREADS, np.int32),), schedule=schedule, seed=seed)
            got = False
        except SimulationError as error:
            assert error.kind == "race" and error.loc is not None and error.other is not None
            got = True
        assert got == wanted, (seed, steps)
        found[wanted] += 1
    assert min(found) > 20
