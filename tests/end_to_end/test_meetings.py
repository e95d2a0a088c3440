"""Where threads meet around loops: what a loop only reads is met for once, before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import TileError
from tileworkbench.ir.instr import Fence, Sync
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.node import rewrite, walk
from tileworkbench.ir.stmt import For
from tileworkbench.simulate import thread
from tileworkbench.target import Target

from .harness import everywhere, instructions, integers

N, TRIPS, ROUNDS = 128, 8, 3


def rotations() -> Any:
    """B[r] = the sum over s of A[r] turned by s places."""

    @T.prim_func
    def kernel(A: T.Tensor((ROUNDS, N), "int32"), B: T.Tensor((ROUNDS, N), "int32")):
        with T.Kernel(1, threads=N):
            row = T.alloc_shared((N,), "int32")
            tx = T.get_thread_binding()
            total = T.alloc_var("int32")
            for r in T.serial(ROUNDS):
                row[tx] = A[r, tx]
                total = 0
                for s in T.serial(TRIPS):
                    total += row[(tx + s) % N]
                B[r, tx] = total

    return kernel


def products() -> Any:
    """C = Σ Aₖ · S, where S is made by ordinary stores before the loop."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 4 * 32), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            part = T.alloc_shared((64, 32), "float16")
            steps = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            for i, j in T.Parallel(32, 64):
                steps[i, j] = T.cast((i + j) % 5, "float16")
            T.clear(acc)
            for k in T.serial(4):
                T.copy(A[0, k * 32], part)
                T.gemm(part, steps, acc)
            T.copy(acc, C)

    return kernel


def fails(kernel: Kernel, gone: Any, inputs: list[np.ndarray], truth: np.ndarray, target: str) -> bool:
    broken = kernel.with_(body=tuple(rewrite(s, lambda n: () if n is gone else n) for s in kernel.body))
    for schedule in ("eager", "latest", "random"):
        out = np.zeros_like(truth)
        try:
            thread.run(broken, [*inputs, out], schedule=schedule, target=Target.of(target), outputs=[len(inputs)])
        except TileError:
            return True
        if not np.array_equal(out, truth):
            return True
    return False


@pytest.mark.parametrize("target", ("sm_80", "sm_90a"))
def test_a_loop_that_only_reads_meets_before_it(target: str) -> None:
    a = integers(1, (ROUNDS, N), "int32")
    truth = sum(np.roll(a, -s, axis=1) for s in range(TRIPS)).astype(np.int32)
    kernel = everywhere(rotations(), [a], truth, (target,))[target]
    syncs = [s for s in instructions(kernel, Sync) if "`row`" in s.reason]
    assert len(syncs) == 2  # before the row is written again, and before it is read
    (inner,) = [n for n in walk(kernel.body) if isinstance(n, For) and str(n.var.name).startswith("s")]
    assert not [n for n in walk(inner) if isinstance(n, Sync)]
    assert all(fails(kernel, gone, [a], truth, target) for gone in syncs)


def test_stores_before_a_loop_of_products_are_fenced() -> None:
    a = integers(1, (64, 4 * 32), "float16", 4)
    steps = np.add.outer(np.arange(32), np.arange(64)) % 5
    truth = (a.reshape(64, 4, 32).sum(1).astype(float) @ steps).astype(np.float32)
    kernel = everywhere(products(), [a], truth, ("sm_90a",))["sm_90a"]
    found = [n for n in walk(kernel.body) if isinstance(n, (Fence, Sync)) and "`steps`" in n.reason]
    assert found and isinstance(found[0], Fence)
    assert fails(kernel, found[0], [a], truth, "sm_90a")
