"""Branches on the thread index around tile operations: whole warps take them together, and meet among themselves."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import TileError

from .harness import everywhere, integers, lowered

ROWS, COLS, PART, COPIES = 2, 256, 64, 4


def test_one_warp_beside_a_pipelined_loop_of_the_others() -> None:
    @T.prim_func
    def sides(
        S: T.Tensor((ROWS, COPIES), "float32"),
        R: T.Tensor((ROWS, COPIES, COLS), "bfloat16"),
        P: T.Tensor((ROWS, COPIES), "float32"),
        Out: T.Tensor((ROWS, COLS), "float32"),
    ):
        with T.Kernel(ROWS, threads=192) as i:
            mixes = T.alloc_shared(COPIES, "float32")
            T.copy(S[i, 0:COPIES], mixes)
            if T.get_thread_binding() < 64:
                for j in T.Parallel(COPIES):
                    P[i, j] = mixes[j] * 2
            else:
                pre = T.alloc_shared(COPIES, "float32")
                for j in T.Parallel(COPIES):
                    pre[j] = mixes[j] + 1
                for h in T.Pipelined(COLS // PART, num_stages=2):
                    xs = T.alloc_shared((COPIES, PART), "float32")
                    xl = T.alloc_fragment((COPIES, PART), "float32")
                    T.copy(R[i, 0, h * PART], xs)
                    T.copy(xs, xl)
                    out = T.alloc_fragment(PART, "float32")
                    T.clear(out)
                    for q in T.serial(COPIES):
                        weight = pre[q]
                        for t in T.Parallel(PART):
                            out[t] += weight * xl[q, t]
                    T.copy(out, Out[i, h * PART])

    rng = np.random.default_rng(0)
    s = rng.integers(-4, 5, (ROWS, COPIES)).astype(np.float32)
    r = rng.integers(-4, 5, (ROWS, COPIES, COLS)).astype(ml_dtypes.bfloat16)
    mixed = np.einsum("nm,nmh->nh", s.astype(np.float64) + 1, r.astype(np.float64))
    everywhere(sides, [s, r], [s * 2, mixed], ("sm_80", "sm_90a"))
    with pytest.raises(TileError, match="a meeting is of one warp or of the whole block"):
        lowered(sides, "gfx942")


def test_reductions_of_different_warps_have_their_own_scratch() -> None:
    """Each side reduces over its warps: partial results of one side must not meet those of the other."""

    @T.prim_func
    def both(A: T.Tensor((2, 4, 256), "float32"), B: T.Tensor((2, 4), "float32")):
        with T.Kernel(1, threads=256):
            if T.get_thread_binding() < 128:
                left = T.alloc_fragment((4, 256), "float32")
                sums = T.alloc_fragment(4, "float32")
                T.copy(A[0, 0:4, 0:256], left)
                T.reduce_sum(left, sums, dim=1)
                T.copy(sums, B[0, 0:4])
            else:
                right = T.alloc_fragment((4, 256), "float32")
                most = T.alloc_fragment(4, "float32")
                T.copy(A[1, 0:4, 0:256], right)
                T.reduce_sum(right, most, dim=1)
                T.copy(most, B[1, 0:4])

    a = np.random.default_rng(1).integers(-4, 5, (2, 4, 256)).astype(np.float32)
    everywhere(both, [a], a.astype(np.float64).sum(2))


def test_a_branch_inside_a_warp_is_refused() -> None:
    @T.prim_func
    def divided(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            held = T.alloc_shared(64, "float32")
            if T.get_thread_binding() < 8:
                T.copy(A, held)
            T.copy(held, B)

    with pytest.raises(TileError, match="only some threads of a warp") as caught:
        lowered(divided, "sm_90a")
    assert "if T.get_thread_binding() < 8" in str(caught.value)


def test_sides_that_run_at_once_share_no_bytes() -> None:
    """A tile that one side has finished with must not lend its bytes to the other side's."""
    N = 64

    @T.prim_func
    def sides(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32"), C: T.Tensor((N, N), "float32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            a = T.alloc_shared((N, N), "float32")
            b = T.alloc_shared((N, N), "float32")
            if tx < 64:
                T.copy(A, a)
                for i, j in T.Parallel(N, N):
                    B[i, j] = a[j, i]
            else:
                T.copy(A, b)
                for i, j in T.Parallel(N, N):
                    C[i, j] = b[N - 1 - i, j]

    a = integers(31, (N, N))
    everywhere(sides, [a], [a.T, a[::-1]], ("sm_80", "sm_90a"))


def test_a_later_branch_sees_what_an_earlier_one_stored() -> None:
    N = 128

    @T.prim_func
    def handed(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            s = T.alloc_shared((N,), "int32")
            if tx < 64:
                T.copy(A, s)
            if tx >= 128:
                for i in T.Parallel(N):
                    B[i] = s[N - 1 - i]
            if tx < 64:
                for i in T.Parallel(N):
                    s[i] = 0

    a = integers(32, (N,), "int32")
    everywhere(handed, [a], a[::-1], ("sm_80", "sm_90a"))


def test_a_statement_outside_with_a_sides_fragment_waits_for_the_other_side() -> None:
    N = 32

    @T.prim_func
    def given(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            f = T.alloc_fragment((N,), "int32")
            s = T.alloc_shared((N,), "int32")
            if tx < 64:
                T.copy(A, f)
            else:
                T.copy(A, s)
            for i in T.Parallel(N):
                f[i] = s[N - 1 - i] * 3
            T.copy(f, B)

    a = integers(33, (N,), "int32")
    everywhere(given, [a], a[::-1] * 3, ("sm_80", "sm_90a"))


def test_a_selection_in_a_written_out_loop_stages_its_copies_in_registers_of_its_own() -> None:
    """Fuzzer's seed 1000137: the second trip's selection looked for the first one's staging registers."""

    @T.prim_func
    def trips(A: T.Tensor((32, 16), "float16"), B: T.Tensor((2, 16, 16), "float16")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            s = T.alloc_shared((16, 16), "float16")
            f = T.alloc_fragment((96, 2, 2), "float16")
            g = T.alloc_fragment((16, 16), "float16")
            for k in range(2):
                if tx < 64:
                    T.copy(A[k * 16, 0], s)
                    for i, j, p in T.Parallel(96, 2, 2):
                        f[i, j, p] = j * 2
                    for i, j in T.Parallel(16, 16):
                        g[i, j] = f[1, k, 1] + s[j, i]
                    T.copy(g, B[k, 0, 0])

    a = integers(5, (32, 16), "float16")
    everywhere(trips, [a], np.stack([a[:16].T, a[16:].T + 2]))


@pytest.mark.parametrize("first", [True, False])
def test_a_tile_of_all_threads_combined_with_one_of_a_side(first: bool) -> None:
    """Fuzzer's seed 12579: the statement went to the side's warps, which held a part of the other tile only."""

    @T.prim_func
    def combined(A: T.Tensor((200, 4), "int32"), B: T.Tensor((200, 4), "int32"), C: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            low = T.alloc_fragment((4,), "int32")
            x = T.alloc_fragment((200, 4), "int32")
            y = T.alloc_fragment((200, 4), "int32")
            if (tx < 32) if first else (tx >= 64):
                T.copy(A[0, 0:4], low)
            T.copy(A, y)
            for i, j in T.Parallel(200, 4):
                x[i, j] = y[i, j] * 2
            T.reduce_absmax(x, low, dim=0)
            T.copy(x, B)
            T.copy(low, C)

    a = integers(12, (200, 4), "int32")
    everywhere(combined, [a], [a * 2, np.abs(a * 2).max(0)], ("sm_80", "sm_90a"))


def test_a_tile_of_all_threads_combined_with_one_of_two_sides() -> None:
    """Both sides would store the tile, each its own copy of it."""

    @T.prim_func
    def combined(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            f = T.alloc_fragment((64,), "int32")
            g = T.alloc_fragment((64,), "int32")
            if tx < 64:
                T.copy(A, f)
            else:
                T.copy(A, f)
            T.copy(A, g)
            for i in T.Parallel(64):
                g[i] = g[i] + f[i]
            T.copy(g, B)

    with pytest.raises(TileError, match="`g` belong to different warpgroups"):
        lowered(combined, "sm_90a")
