"""Extents of copies and other tile operands."""

from __future__ import annotations

import pytest

import tileworkbench.language as T
from tileworkbench.errors import ShapeError
from tileworkbench.ir.stmt import Store
from tileworkbench.language.linear import difference
from tileworkbench.ops.copy import Copy

from .cells import build, run_cell

ROWS = [
    # source, destination, extents of the source, extents of the destination
    ("X[n, 0, 0]", "S", (1, 16, 32), (16, 32)),
    ("S", "X[0, n, 4]", (16, 32), (1, 16, 32)),
    ("X[0, 3, 0:32]", "S[0:1, :]", (1, 1, 32), (1, 32)),
    ("X[0, n, 0:32]", "S", (1, 16, 32), (16, 32)),
    ("X[n, 0:16, :]", "S", (1, 16, 32), (16, 32)),
    ("X[0, n * 8 : (n + 1) * 8, 0:32]", "S[8:16, :]", (1, 8, 32), (8, 32)),
    ("V[n]", "S[3, 0:32]", (32,), (1, 32)),
    ("V[n]", "S[3, :]", (32,), (1, 32)),
    ("X[2, :, 5]", "W", (1, 16, 1), (16,)),
    ("S", "S2", (16, 32), (16, 32)),
]


@pytest.mark.parametrize("src, dst, want_src, want_dst", ROWS)
def test_extents(src, dst, want_src, want_dst):
    copy = last(f"T.copy({src}, {dst})")
    assert isinstance(copy, Copy)
    assert copy.src.extents == want_src and copy.dst.extents == want_dst


def last(text):
    source = f"""
@T.prim_func
def k(X: T.Tensor((4, 16, 32), "float16"), V: T.Tensor((512,), "float16"), n: T.int32):
    with T.Kernel(1) as bx:
        S = T.alloc_shared((16, 32), "float32")
        S2 = T.alloc_shared((16, 32), "float16")
        W = T.alloc_fragment((16,), "float16")
        {text}
"""
    return run_cell(source)["k"].kernel.body[-1]


@pytest.mark.parametrize(
    "text",
    [
        "T.copy(W, S)",
        "T.copy(S[0:8, :], S2[0:9, :])",
        "T.copy(X, S)",
        "T.copy(X[0:2, :, :], S)",
        "T.copy(V[0:16], V[0:n])",
    ],
)
def test_extents_that_do_not_fit_are_refused(text):
    with pytest.raises(ShapeError):
        last(text)


def test_lets_of_index_arithmetic_are_looked_through():
    copy = last("first = n * 8 + 3; past = n * 8 + 19; T.copy(V[first:past], W)")
    assert copy.src.extents == (16,)
    with pytest.raises(ShapeError):
        last("v = T.alloc_var('int32', 0); a = v; b = v + 16; T.copy(V[a:b], W)")


def test_two_elements_are_a_store_unless_hinted():
    store = last("T.copy(X[0, 1, 2], S[3, 4])")
    assert isinstance(store, Store) and store.value.dtype.name == "float32"
    assert isinstance(last("T.copy(X[0, 1, 2], S[3, 4], disable_tma=True)"), Copy)


def test_hints_are_kept():
    copy = last("T.copy(X[0, 0, 0], S, coalesced_width=4, disable_tma=True, eviction_policy='evict_first')")
    assert copy.hints == (("coalesced_width", 4), ("disable_tma", True), ("eviction_policy", "evict_first"))


def test_differences_of_index_expressions():
    n, m = T.dynamic("n, m")
    assert difference((n + 1) * 64, n * 64) == 64
    assert difference(n * 4 + m + 7, m + n * 4 - 1) == 8
    assert difference(2 * (n - m) + 3, n + n - 2 * m) == 3
    assert difference(n + 3, 3) is n
    assert not isinstance(difference(n * 2, m), int)


def test_gemm_takes_slices_with_leading_ones():
    kernel = build(
        "S = T.alloc_shared((3, 64, 32), 'float16')\nC = T.alloc_fragment((64, 64), 'float32')\n"
        "T.gemm(S[n % 3, :, :], S[1, :, :], C, transpose_B=True, policy=T.GemmWarpPolicy.FullRow, clear_accum=n == 0)"
    )
    gemm = kernel.body[-1]
    assert gemm.mnk == (64, 64, 32) and gemm.policy == "full_row" and gemm.transpose_b and not gemm.transpose_a
    assert gemm.clear.op == "eq" and gemm.a.extents == (1, 64, 32)
