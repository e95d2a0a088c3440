"""TileLang's names around a kernel's text: simplification, and kernels made by their class."""

from __future__ import annotations

import numpy as np

import tileworkbench.language as T
from tileworkbench.compat.device import determine_target
from tileworkbench.compat.lowering import JITKernel, apply_simplify, lower, simplify_prim_func
from tileworkbench.compat.tvmtarget import Target


def sums(extent):
    n = T.dynamic("n")

    @T.prim_func
    def total(
        A: T.Tensor((extent, n), "int32"),
        unused: T.Tensor((extent,), "int32"),
        sized: T.Tensor((n,), "int32"),
        B: T.Tensor((extent,), "int32"),
    ):
        with T.Kernel(extent, threads=32) as bx:
            for k in T.serial(n):
                B[bx] = B[bx] + A[bx, k]

    return total


def test_unused_parameters_are_left_out():
    made = apply_simplify(sums(3))
    assert [p.name for p in made.params] == ["A", "B"]
    assert [p.name for p in simplify_prim_func(sums)(3).params] == ["A", "B"]
    kernel = JITKernel(made, target="cpu")
    assert isinstance(kernel, JITKernel)
    a, b = np.arange(12, dtype=np.int32).reshape(3, 4), np.zeros(3, np.int32)
    kernel(a, b)
    assert b.tolist() == [6, 22, 38]


def test_the_only_tensor_that_tells_a_size_stays():
    n = T.dynamic("n")

    @T.prim_func
    def ones(sized: T.Tensor((n,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=32):
            for k in T.serial(n):
                B[k] = 1

    assert [p.name for p in apply_simplify(ones).params] == ["sized", "B"]


def test_names_of_other_backends_mean_the_one_builder():
    from tileworkbench.compat.device import check_cutedsl_available
    from tileworkbench.target import Target

    check_cutedsl_available()
    assert Target.of("cutedsl") == Target.of("cuda")
    first, second = (JITKernel(sums(n), target="cpu", execution_backend="cutedsl") for n in (2, 3))
    assert first.adapter.kernels == {"total": first}
    assert first.adapter.kernels != second.adapter.kernels


def test_auto_is_the_target_of_the_block_around():
    with Target("c"):
        assert lower(sums(3)).kernel.target.dialect == "cpu"
        assert determine_target("auto") == "cpu" and determine_target("auto", return_object=True).kind.name == "c"
        assert lower(sums(3), target="cuda -arch=sm_80").kernel.target.name == "sm_80"
    with Target("cuda -arch=sm_80"):
        assert lower(sums(3)).kernel.target.name == "sm_80" and determine_target("auto") == "sm_80"
