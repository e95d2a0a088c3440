"""Selections of warps wait for one another as the text has them; the sides of one branch do not. Which branch one came
from is not to be told by its place: macros and written-out loops put several on one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.ir.instr import Sync
from tileworkbench.passes.canonicalise import canonicalise
from tileworkbench.passes.groups import groups
from tileworkbench.target import Target

from .harness import everywhere, instructions, integers

N = 256


@T.macro
def selected(k, A, s, B):
    """Warpgroup 0 fills the tile, warpgroup 1 reads it backwards."""
    with T.ws(k):
        if k == 0:
            T.copy(A, s)
        else:
            for i in T.Parallel(N):
                B[i] = s[N - 1 - i]


@T.macro
def left(k, A, s, B):
    """The same by a branch that has statements on its second side only."""
    if T.get_thread_binding() // 128 != k:
        pass
    else:
        if k == 0:
            T.copy(A, s)
        else:
            for i in T.Parallel(N):
                B[i] = s[N - 1 - i]


@pytest.mark.parametrize("half", [selected, left], ids=["ws", "else"])
def test_calls_of_a_macro_on_one_line_are_one_after_the_other(half: Any) -> None:
    @T.prim_func
    def handed(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((N,), "int32")
            [half(k, A, s, B) for k in (0, 1)]

    a = integers(41, (N,), "int32")
    everywhere(handed, [a], a[::-1], ("sm_80", "sm_90a"))


def test_trips_of_a_written_out_loop_are_one_after_the_other() -> None:
    """The second trip's warpgroup reads what the first trip's stored."""

    @T.prim_func
    def trips(A: T.Tensor((2, N), "int32"), B: T.Tensor((2, N), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            s = T.alloc_shared((3, N), "int32")
            T.fill(s, 7)
            for k in T.unroll(2):
                if tx // 128 != k:
                    pass
                else:
                    T.copy(A[k, 0:N], s[k + 1, :])
                    for i in T.Parallel(N):
                        B[k, i] = s[k, N - 1 - i]

    a = integers(42, (2, N), "int32")
    everywhere(trips, [a], np.stack([np.full(N, 7), a[0, ::-1]]), ("sm_80", "sm_90a"))


def chain() -> Any:
    @T.prim_func
    def sides(A: T.Tensor((3, N), "int32"), B: T.Tensor((3, N), "int32")):
        with T.Kernel(1, threads=384):
            tx = T.get_thread_binding()
            s = T.alloc_shared((3, N), "int32")
            if tx < 128:
                T.copy(A[0, 0:N], s[0, :])
            elif tx < 256:
                T.copy(A[1, 0:N], s[1, :])
            else:
                T.copy(A[2, 0:N], s[2, :])
            for i, j in T.Parallel(3, N):
                B[i, j] = s[i, N - 1 - j]

    return sides


def test_the_sides_of_an_elif_run_at_once() -> None:
    """They are on different lines, and of one branch: the block meets once, before the tile is read."""
    a = integers(43, (3, N), "int32")
    for kernel in everywhere(chain(), [a], a[:, ::-1], ("sm_80", "sm_90a")).values():
        assert len(instructions(kernel, Sync)) == 1


def test_branches_inside_one_side_are_one_after_the_other() -> None:
    @T.prim_func
    def nested(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32"), C: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=384):
            tx = T.get_thread_binding()
            s = T.alloc_shared((N,), "int32")
            t = T.alloc_shared((N,), "int32")
            if tx < 128:
                T.copy(A, t)
                for i in T.Parallel(N):
                    C[i] = t[i] + 1
            else:
                if tx < 256:
                    T.copy(A, s)
                if tx >= 256:
                    for i in T.Parallel(N):
                        B[i] = s[N - 1 - i]

    a = integers(44, (N,), "int32")
    everywhere(nested, [a], [a[::-1], a + 1], ("sm_80", "sm_90a"))


def test_a_side_that_no_thread_comes_to_is_left_out() -> None:
    @T.prim_func
    def covered(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            s = T.alloc_shared((N,), "int32")
            if tx < 128:
                T.copy(A, s)
            elif tx < 64:
                T.fill(s, 5)
            T.copy(s, B)

    a = integers(45, (N,), "int32")
    everywhere(covered, [a], a, ("sm_80", "sm_90a"))


def test_a_pipeline_of_some_warps_leaves_its_last_tile_to_the_others() -> None:
    """The tile is read by all warps after the loop: the loop, which is one warp's, keeps no versions of it."""

    @T.prim_func
    def last(
        A: T.Tensor((4, 64), "int32"),
        B: T.Tensor((5, 32), "int32"),
        C: T.Tensor((4, 64), "int32"),
        D: T.Tensor((32,), "int32"),
    ):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((4, 64), "int32")
            s = T.alloc_shared((32,), "int32")
            if T.get_thread_binding() < 32:
                T.copy(A, f)
            for k in T.Pipelined(5, num_stages=4):
                T.copy(B[k, 0:32], s)
                for i, j in T.Parallel(4, 64):
                    f[i, j] = f[i, j] * 2 + s[j % 32]
            T.copy(f, C)
            T.copy(s, D)

    a, b = integers(46, (4, 64), "int32"), integers(47, (5, 32), "int32")
    c = a
    for k in range(5):
        c = c * 2 + np.tile(b[k], 2)
    everywhere(last, [a, b], [c, b[4]], ("sm_80", "sm_90a"))


def test_asking_twice_changes_nothing() -> None:
    target = Target.of("sm_90a")
    once = groups(canonicalise(chain().kernel, target), target)
    again = groups(once, target)
    assert [getattr(s, "after", None) for s in again.body] == [getattr(s, "after", None) for s in once.body]
