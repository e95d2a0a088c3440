"""Serial loops on the targets of one thread a block: run many iterations at a time where that changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import LanguageError, TargetError
from tileworkbench.ir.node import walk
from tileworkbench.ir.stmt import For
from tileworkbench.jitkernel.hostloops import spread
from tileworkbench.ops.parallel import Parallel


def loops(func):
    """How the loops of the kernel stand: the extents of parallel ones, the names of serial ones, outermost first."""
    body = spread(func.kernel).body
    return [n.extents if isinstance(n, Parallel) else n.var.name for n in walk(body) if isinstance(n, For | Parallel)]


@T.prim_func
def product(A: T.Tensor((32, 20), "float32"), B: T.Tensor((20, 24), "float32"), C: T.Tensor((32, 24), "float32")):
    with T.Kernel(2, threads=1) as bx:
        c = T.alloc_local((16, 24), "float32")
        for i, j in T.grid(16, 24):
            c[i, j] = 0
        for i, j, k in T.grid(16, 24, 20):
            c[i, j] += A[bx * 16 + i, k] * B[k, j]
        for i in T.serial(16):
            for j in T.serial(24):
                C[bx * 16 + i, j] = c[i, j]


def test_a_product_keeps_its_sums_in_order():
    assert loops(product) == [(16, 24), "k", (16, 24), (16, 24)]
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((32, 20), np.float32), rng.standard_normal((20, 24), np.float32)
    want = np.zeros((32, 24), np.float32)
    for k in range(20):
        want += a[:, k : k + 1] * b[k]
    made = np.zeros_like(want)
    tw.compile(product, target="c")(a, b, made)
    plain = np.zeros_like(want)
    tw.compile(product, target="cpu")(a, b, plain)
    assert np.array_equal(made, plain) and np.allclose(made, want, rtol=1e-6)


def test_the_blocks_of_the_host_have_one_thread_in_a_target_block():
    from tileworkbench.compat.tvmtarget import Target

    @T.prim_func
    def counted(B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            T.atomic_add(B[0], 1)

    with Target("llvm"):
        kernel = tw.compile(counted)
    b = np.zeros(1, np.int32)
    kernel(b)
    assert b[0] == 1


LEFT = {
    "a recurrence": "c[i] = c[i - 1] + 1",
    "two places of one tile": "c[i] = c[15 - i]",
    "one element": "c[0] = A[i]",
    "a folded place": "c[i // 2] = A[i]",
    "a place that is loaded": "c[I[i]] = A[i]",
    "tensors that may be one array": "B[i] = A[15 - i]",
}


@pytest.mark.parametrize("statement", list(LEFT.values()), ids=list(LEFT))
def test_other_loops_stay_serial(statement):
    from tests.language.cells import run_cell

    kernel = run_cell(f"""
        @T.prim_func
        def k(A: T.Tensor((16,), "int32"), I: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
            with T.Kernel(1, threads=1):
                c = T.alloc_local((16,), "int32")
                for i in T.serial(1 if "- 1" in {statement!r} else 0, 16):
                    {statement}
        """)["k"]
    assert loops(kernel) == ["i"]


def test_a_host_takes_a_function_without_launches():
    @T.prim_func
    def both(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32"), C: T.Tensor((16,), "float32")):
        for i in T.Parallel(16):
            B[i] = A[i] * 2
        for i in T.serial(16):
            C[i] = B[i] + 1

    a = np.arange(16, dtype=np.float32)
    for target in ("c", "llvm"):
        b, c = tw.compile(both, out_idx=[1, 2], target=target)(a)
        np.testing.assert_array_equal(b, 2 * a)
        np.testing.assert_array_equal(c, 2 * a + 1)
    for target in ("cpu", "sm_80"):
        with pytest.raises(LanguageError, match="outside `with"):
            tw.compile(both, out_idx=[1, 2], target=target)


def test_a_host_has_no_copy_engine():
    def added(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, threads=32):
            T.atomic_add(B, A, use_tma=True)

    with pytest.raises(TargetError, match="use_tma on a host"):
        tw.compile(added, target="c")
    assert tw.compile(added, target="cpu")
