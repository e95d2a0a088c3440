"""Candidates of a search compiled by TileLang's names."""

from __future__ import annotations

import numpy as np

import tileworkbench.language as T
from tileworkbench.compat.tirx import IRBuilderFrame
from tileworkbench.compat.tuning import CompileArgs, compile_grouped_unit_tvm_ffi


def plus_one(size):
    if size > 100:
        raise ValueError("too large")

    @T.prim_func
    def kernel(A: T.Tensor((size,), "float32"), B: T.Tensor((size,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(size):
                B[i] = A[i] + 1.0

    return kernel


def test_each_candidate_has_a_kernel_or_what_failed():
    items = [(4, {"size": 17}), (2, {"size": 101}), (9, {"size": 23})]
    found = compile_grouped_unit_tvm_ffi(items, CompileArgs(out_idx=[1], target="cpu"), plus_one)
    assert [(number, config["size"]) for number, config, _, _ in found] == [(4, 17), (2, 101), (9, 23)]
    assert found[1][2] is None and str(found[1][3]) == "too large"
    for _, config, kernel, error in (found[0], found[2]):
        assert error is None and kernel.adapter._ffi_callee_allocated_output_abi
        a = np.arange(config["size"], dtype=np.float32)
        assert np.array_equal(kernel(a), a + 1)


def test_arguments_are_told_apart():
    made = {CompileArgs(out_idx=[0]), CompileArgs(out_idx=[0]), CompileArgs(out_idx=[1]), CompileArgs(target="cpu")}
    assert len(made) == 3


def test_loops_of_step_one_are_frames():
    step = T.dynamic("step")
    assert isinstance(T.serial(1, 10), IRBuilderFrame) and isinstance(T.serial(1, 10, 1), IRBuilderFrame)
    others = [T.serial(1, 10, 2), T.serial(10, 0, -1), T.serial(1, 10, step), 3]
    assert not any(isinstance(other, IRBuilderFrame) for other in others)
