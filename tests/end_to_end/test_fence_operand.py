"""T.warpgroup_fence_operand: an accumulator's registers between the products of a warpgroup and their waits."""

from __future__ import annotations

import pytest

import tileworkbench.language as T
from tileworkbench.errors import TargetError
from tileworkbench.ir.instr import WgmmaFence
from tileworkbench.pipeline import run_passes
from tileworkbench.target import Target

from .harness import everywhere, instructions, integers


def products():
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            first, second = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(first)
            T.clear(second)
            T.warpgroup_fence_operand(first, num_regs=32)
            T.wgmma_gemm(a, b, first)
            T.wgmma_gemm(a, b, second)
            T.wait_wgmma(1)
            T.warpgroup_fence_operand(first)
            for i, j in T.Parallel(64, 64):
                first[i, j] = first[i, j] * 2
            T.wait_wgmma(0)
            T.warpgroup_fence_operand(second[0, 0], 0, 32, "float32")
            for i, j in T.Parallel(64, 64):
                first[i, j] = first[i, j] - second[i, j]
            T.copy(first, C)

    return kernel


def test_the_registers_keep_their_place():
    a, b = integers(1, (64, 64), "float16", 4), integers(2, (64, 64), "float16", 4)
    made = everywhere(products(), [a, b], a.astype("f4") @ b.astype("f4"), ("sm_90a",))["sm_90a"]
    asked = [s for s in instructions(made, WgmmaFence) if len(s.regs) == 1 and s.regs[0].count == 32]
    assert len(asked) >= 3


def test_targets_without_warpgroup_products():
    with pytest.raises(TargetError, match="wgmma"):
        run_passes(products().kernel, Target.of("sm_80"))
