"""A fixed number of random kernels on every oracle, the seeds that once failed, and proof that the oracles can fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tileworkbench.errors import TileError
from tileworkbench.simulate import thread
from tileworkbench.target import Target

from . import oracle
from .card import back, moved
from .grow import generate
from .program import CONTAINER, Program, Tensor, placed, valid
from .shrink import shrink
from .statements import Copy, Fill, Gemm, Parallel, Put, Statement
from .terms import Get, Name, Number, Pair

SEEDS = Path(__file__).with_name("seeds.txt")
TILE_SEEDS = range(40)
THREAD_SEEDS = range(12)


def stored() -> list[int]:
    """Seeds whose kernels failed once."""
    lines = (line.split("#")[0].strip() for line in SEEDS.read_text(encoding="utf-8").splitlines())
    return [int(line) for line in lines if line]


def require_right(verdicts: list[oracle.Verdict], program: Program) -> None:
    bad = [v for v in verdicts if v.bad]
    if bad:
        raise AssertionError(f"{bad[0].kind} on {bad[0].where}\n{bad[0].text}\n{program.text()}")


@pytest.mark.parametrize("seed", TILE_SEEDS)
def test_tile_machine(seed: int) -> None:
    program = generate(seed)
    require_right([oracle.on_tile_machine(program, program.expected())], program)


@pytest.mark.parametrize("seed", [*THREAD_SEEDS, *stored()])
def test_thread_machine(seed: int) -> None:
    """One target, schedule and variant each, in turn: the command runs them all."""
    program = generate(seed)
    target, schedule = oracle.TARGETS[seed % 3], oracle.SCHEDULES[seed // 3 % 3]
    require_right(oracle.judge(program, (target,), (schedule,), vary=seed % oracle.VARIANTS), program)


def small(body: tuple[Statement, ...]) -> Program:
    tensors = (Tensor("A0", (8, 8), "int32", -9, 9), Tensor("O0", (8, 8), "int32", 0, 0))
    return Program(tensors, ((1, "1"),), 64, (), body)


ELEMENT = Get("O0", "int32", (Name("i"), Name("j")))
READ = Get("A0", "int32", (Name("i"), Name("j")))


@pytest.mark.parametrize("dtype", CONTAINER)
def test_tensors_that_start_later_hold_the_same(dtype: str) -> None:
    pytest.importorskip("torch")
    a = np.arange(24).reshape(4, 6).astype(CONTAINER[dtype])
    for start in (1, 2, 3):
        there = moved(a, start, "cpu")
        assert there.storage_offset() == start and there.is_contiguous()
        assert np.array_equal(back(there, a), a) and back(there, a).dtype == a.dtype
        near = placed(a, start * a.itemsize)
        assert near.ctypes.data % 16 == start * a.itemsize % 16 and np.array_equal(near, a)


def test_the_reference_is_what_it_says() -> None:
    """The description's meaning against NumPy written by hand."""
    program = small((Parallel(("i", "j"), (8, 8), (Put(ELEMENT, Pair("*", READ, Number(3))),)),))
    a = program.arguments()[0]
    assert np.array_equal(program.expected()[1], a * 3)


def test_descriptions_without_a_meaning_are_refused() -> None:
    same = Get("O0", "int32", (Name("i"), Number(0)))
    assert not valid(small((Parallel(("i", "j"), (8, 8), (Put(same, READ),)),)))  # eight iterations, one element
    shifted = Get("O0", "int32", (Name("i"), Pair("+", Name("j"), Number(1))))
    assert not valid(small((Parallel(("i", "j"), (8, 8), (Put(ELEMENT, shifted),)),)))  # reads another iteration's
    large = Pair("*", Number(2**20, "int32"), Number(2**20, "int32"))
    assert not valid(small((Parallel(("i", "j"), (8, 8), (Put(ELEMENT, large),)),)))  # does not fit int32


def test_wrong_values_and_errors_are_told_apart() -> None:
    program = small((Parallel(("i", "j"), (8, 8), (Put(ELEMENT, READ),)),))
    wanted = program.expected()
    assert oracle.compared("", program, wanted, lambda args: None).kind == "wrong"

    def fails(args: object) -> None:
        raise TileError("no")

    assert oracle.compared("", program, wanted, fails).kind == "fault"
    kernel = oracle.lowered(program, Target.of("sm_80"))
    run = oracle.compared("", program, wanted, lambda args: thread.run(kernel, args, target=Target.of("sm_80")))
    assert run.kind == "right"


def test_shrinking_keeps_the_failure_and_little_else() -> None:
    """A description of many statements shrinks to the one that a made-up fault needs."""
    program = generate(5)
    assert len(program.body) > 4

    def fails(p: Program) -> bool:
        return any(isinstance(s, Gemm) for s in everything(p.body))

    made = shrink(program, fails)
    assert fails(made) and valid(made)
    assert all(isinstance(s, (Copy, Fill, Gemm)) for s in everything(made.body))
    assert len(made.body) <= 4


def everything(body: tuple[Statement, ...]) -> list[Statement]:
    return [t for s in body for t in (s, *everything(tuple(s.children())))]


def test_variants_differ() -> None:
    """Three thread counts times five numbers of stages."""
    program = next(p for p in map(generate, range(50)) if "T.Pipelined" in p.text())
    assert len({oracle.variants(program, at).text() for at in range(15)}) == 15
