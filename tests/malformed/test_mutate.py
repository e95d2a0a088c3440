"""Mutants of right kernels compile or are refused; the command runs many more (`python -m tests.malformed.mutate`)."""

from __future__ import annotations

import random

from .mutate import FINE, SECONDS, difference, mutants, outcome, parses, run, seeds

COUNT = 250


def test_seeds_compile() -> None:
    for number, origin in enumerate(seeds()):
        assert outcome(origin.text, number).kind == "compiled", origin.name


def test_mutants_compile_or_are_refused() -> None:
    found, wrong, longest = run(COUNT, 11)
    assert not [f"{made.kind}: {made.detail}\n{difference(origin, made.text)}" for origin, made in wrong]
    assert sum(found.values()) == COUNT
    assert set(found) <= set(FINE)
    assert found["compiled"] > COUNT / 10, "most mutants of some kinds are right kernels"
    assert found["refused"] > COUNT / 10
    assert longest < SECONDS


def test_mutants_are_python_and_change_the_kernel_alone() -> None:
    for origin, text in mutants(50, random.Random(3)):
        assert parses(text)
        own = origin.text.split("\n")
        assert text.split("\n")[: origin.first] == own[: origin.first]
        assert text != origin.text


def test_other_errors_are_told_apart() -> None:
    """What a crash inside the package, plain Python outside kernels, and a refusal count as."""
    text = seeds()[0].text
    assert outcome(text + "from tileworkbench.places import position\nposition(None)\n", 0).kind not in FINE
    assert outcome(text + "1 / 0\n", 1).kind == "python"
    assert outcome(text.replace("T.ceildiv(N, block)", "T.ceildiv(N, 0)"), 2).kind == "refused"
