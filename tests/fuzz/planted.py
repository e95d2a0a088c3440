"""Lowered kernels with the arguments that tell a right one from a wrong one, for faults planted in them.

The data is exact, so that one changed bit shows; attention's truth is what the right kernel gives, which other tests
hold against float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests import kernels
from tests.end_to_end.cases import CONTAINER, Case, add_case, attention_case, compare, gemm_case, softmax_case
from tileworkbench.ir.kernel import Kernel
from tileworkbench.pipeline import run_passes
from tileworkbench.simulate import thread
from tileworkbench.simulate.thread.mutate import Mutant, mutants
from tileworkbench.target import Target

# What orders threads, engines and copies: every fault of these kinds must be found.
ORDER = (
    "drop", "narrow", "arrive", "threads", "pending", "reads only", "count", "bytes", "parity", "cursor", "election",
)  # fmt: skip
SMALL = {"BM": 64, "BN": 64, "BK": 32}
CASES: dict[str, tuple[Case, str]] = {
    "gemm sm_80": (gemm_case("", 64, 64, 160, stages=3, **SMALL), "sm_80"),
    "gemm sm_90a": (gemm_case("", 64, 64, 160, stages=3, **SMALL), "sm_90a"),
    "gemm gfx942": (gemm_case("", 64, 64, 96, stages=2, **SMALL), "gfx942"),
    "attention sm_90a": (attention_case("", 1, 1, 192, 64, False), "sm_90a"),
    "softmax sm_80": (softmax_case("", 4, 128, BM=2), "sm_80"),
    "add sm_90a": (add_case("", lambda: kernels.add_2d(32, 64), (32, 64), "float32"), "sm_90a"),
}


@dataclass(frozen=True)
class Planted:
    """A right kernel; `arguments()` are fresh ones and `truth` is what they give."""

    kernel: Kernel
    arguments: Callable[[], list[Any]]
    truth: tuple[np.ndarray, ...]

    def mutants(self, kinds: tuple[str, ...] = ()) -> list[Mutant]:
        return list(mutants(self.kernel, kinds))


@cache
def planted(name: str) -> Planted:
    """The case's lowered kernel, after it has given the right result."""
    case, target = CASES[name]
    func, inputs, wanted, bound = case.make()
    goal = Target.of(target)
    kernel = run_passes(func.kernel, goal).with_(outputs=(len(inputs),))

    def arguments() -> list[Any]:
        out = np.zeros(wanted.shape, CONTAINER[kernel.params[-1].dtype.name])
        return [*(a.copy() for a in inputs), out]

    args = arguments()
    thread.run(kernel, args, target=goal)
    compare(args[-1], wanted, bound)
    return Planted(kernel, arguments, (args[-1],))
