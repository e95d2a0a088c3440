"""Selections of warps side by side in a loop: where each waits for the kernel's barriers, trips do not meet."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench.language as T
from tileworkbench.errors import TileError
from tileworkbench.ir.instr import Sync
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.node import rewrite
from tileworkbench.simulate import thread
from tileworkbench.target import Target

from .harness import everywhere, instructions, integers

M, N, K, BK, STAGES = 64, 64, 160, 32, 2


def product() -> Any:
    """One warpgroup copies, the other multiplies and turns each partial result in a tile of its own."""

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
        Parts: T.Tensor((K // BK, M), "float32"),
    ):
        with T.Kernel(1, threads=256):
            As = T.alloc_shared((STAGES, M, BK), "float16")
            Bs = T.alloc_shared((STAGES, BK, N), "float16")
            row = T.alloc_shared((M,), "float32")
            acc = T.alloc_fragment((M, N), "float32")
            full = T.alloc_barrier([128] * STAGES)
            free = T.alloc_barrier([128] * STAGES)
            tx = T.get_thread_binding()
            with T.ws(0):
                T.clear(acc)
            for k in range(K // BK):
                with T.ws(1):
                    T.mbarrier_wait_parity(free[k % STAGES], k // STAGES % 2 ^ 1)
                    T.tma_copy(A[:, k * BK : (k + 1) * BK], As[k % STAGES, :, :], barrier=full[k % STAGES])
                    T.tma_copy(B[k * BK : (k + 1) * BK, :], Bs[k % STAGES, :, :], barrier=full[k % STAGES])
                    T.mbarrier_arrive(full[k % STAGES])
                with T.ws(0):
                    T.mbarrier_wait_parity(full[k % STAGES], k // STAGES % 2)
                    T.gemm(As[k % STAGES, :, :], Bs[k % STAGES, :, :], acc)
                    if tx < M:
                        row[tx] = T.cast(As[k % STAGES, tx, 0], "float32")
                    if tx < M:
                        Parts[k, tx] = row[M - 1 - tx]
                    T.mbarrier_arrive(free[k % STAGES])
            with T.ws(0):
                T.copy(acc, C)

    return kernel


def test_trips_do_not_meet() -> None:
    a, b = integers(1, (M, K), "float16", 4), integers(2, (K, N), "float16", 4)
    truth = [a.astype(float) @ b.astype(float), a.T[::BK, ::-1].astype(float)]
    kernel = everywhere(product(), [a, b], truth, ("sm_90a",))["sm_90a"]
    syncs = instructions(kernel, Sync)
    assert [s.who for s in syncs if s.who == "block"] == ["block"]  # the barriers' initialisation
    # The tile that one selection writes and reads needs two meetings of its warps: before each trip's write and read.
    inner = [s for s in syncs if "`row`" in s.reason]
    assert len(inner) == 2 and all(s.who != "block" for s in inner)
    for gone in inner:
        assert _fails(kernel, gone, [a, b], truth)


def _fails(kernel: Kernel, gone: Sync, inputs: list[np.ndarray], truth: list[np.ndarray]) -> bool:
    broken = kernel.with_(body=tuple(rewrite(s, lambda n: () if n is gone else n) for s in kernel.body))
    for schedule in ("eager", "latest", "random"):
        outs = [np.zeros(t.shape, np.float32) for t in truth]
        try:
            thread.run(broken, [*inputs, *outs], schedule=schedule, target=Target.of("sm_90a"), outputs=[2, 3])
        except TileError:
            return True
        if not all(np.array_equal(o, t) for o, t in zip(outs, truth, strict=True)):
            return True
    return False
