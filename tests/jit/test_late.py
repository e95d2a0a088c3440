"""Tiles with the extents of a call's tensors: compiled for each size."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import LaunchError, OptionError, ShapeError, TargetError


def doubled(dtype="float32"):
    n = T.dynamic("n")
    shape = (n, 8)

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(8, 4), threads=64) as bx:
            s = T.alloc_shared((n, 4), dtype)
            f = T.alloc_fragment((n, 4), dtype)
            T.copy(A[0:n, bx * 4 : bx * 4 + 4], s)
            T.copy(s, f)
            for i, j in T.Parallel(n, 4):
                f[i, j] = f[i, j] * 2
            T.copy(f, B[0, bx * 4])

    return main


@pytest.mark.parametrize("out_idx", [None, [-1]])
def test_each_size_has_its_kernel(out_idx):
    kernel = tw.compile(doubled(), out_idx=out_idx, target="cpu")
    for n in (16, 5, 16):
        a = np.random.default_rng(n).standard_normal((n, 8)).astype("float32")
        if out_idx is None:
            b = np.zeros_like(a)
            assert kernel(a, b) is None
        else:
            b = kernel(A=a)
        np.testing.assert_array_equal(b, 2 * a)
    assert kernel.for_sizes(n=5) is kernel.for_sizes(n=5) and len(kernel._made) == 2


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_the_kernel_of_one_size_has_all_that_others_have(target):
    made = tw.jit(doubled, out_idx=[1], target=target)().for_sizes(n=12)
    a = np.arange(96, dtype="float32").reshape(12, 8)
    for level in ("tile", "thread"):
        np.testing.assert_array_equal(tw.simulate(made, a, level=level).outputs[0], 2 * a)
    assert made.registers and made.shared_bytes >= 12 * 4 * 4 and not made.tile.symbols()


def test_the_profiler_is_that_of_a_size():
    kernel = tw.compile(doubled(), out_idx=[1], target="cpu")
    assert kernel.get_profiler(n=4).run_once().shape == (4, 8)
    with pytest.raises(OptionError, match="the size of n is not given"):
        kernel.get_profiler()


def test_mistakes():
    kernel = tw.compile(doubled(), out_idx=[0], target="cpu")
    assert "compiled for each size" in repr(kernel) and kernel.name == "main"
    with pytest.raises(TargetError, match="by itself has no text"):
        kernel.get_kernel_source()
    with pytest.raises(AttributeError):
        kernel.nothing
    with pytest.raises(LaunchError, match="takes 1 argument"):
        kernel()
    with pytest.raises(ShapeError, match="an extent is known only at run time"):
        doubled().kernel


def test_other_extents_of_a_call_are_no_sizes_of_tiles():
    m, n = T.dynamic("m, n")

    @T.prim_func
    def rows(A: T.Tensor((m, n), "int32"), k: T.int32, B: T.Tensor((m, n), "int32")):
        with T.Kernel(m, threads=32) as bx:
            row = T.alloc_shared((n,), "int32")
            T.copy(A[bx, 0], row)
            for i in T.Parallel(n):
                B[bx, i] = row[n - 1 - i] + k

    kernel = tw.compile(rows, out_idx=[2], target="cpu")
    assert [s.name for s in kernel.sizes] == ["n"]
    for shape in ((3, 7), (5, 7), (2, 4)):
        a = np.arange(shape[0] * shape[1], dtype="int32").reshape(shape)
        np.testing.assert_array_equal(kernel(a, 10), a[:, ::-1] + 10)
    assert len(kernel._made) == 2


def test_a_scalar_is_no_size():
    with pytest.raises(ShapeError, match="known only at run time"):

        @T.prim_func
        def main(A: T.Tensor((8,), "int32"), n: T.int32):
            with T.Kernel(1, threads=32) as bx:
                s = T.alloc_shared((n,), "int32")
                A[bx] = s[0]
