"""Launches written as loops over blocks and threads, and pointers that T.match_buffer gives a shape."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere
from tileworkbench.errors import TileError


def test_a_launch_by_loops():
    @T.prim_func
    def kernel(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (8, 64), dtype="float32", align=16)
        B = T.match_buffer(b, (8, 64))
        for bx in T.thread_binding(8, thread="blockIdx.x"):
            for tx in T.thread_binding(0, 64, thread="threadIdx.x"):
                B[bx, tx] = A[7 - bx, tx] * 2.0 + tx

    assert kernel.kernel.grid == (8,) and kernel.kernel.threads == 64
    a = np.arange(512, dtype=np.float32).reshape(8, 64)
    everywhere(kernel, [a], a[::-1] * 2 + np.arange(64))


def test_grids_and_blocks_of_two_dimensions():
    @T.prim_func
    def kernel(A: T.Tensor((4, 3, 2, 32), "int32"), B: T.Tensor((4, 3, 2, 32), "int32")):
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for by in T.thread_binding(3, thread="blockIdx.y"):
                for ty in T.thread_binding(2, thread="threadIdx.y"):
                    for tx in T.thread_binding(32, thread="threadIdx.x"):
                        B[bx, by, ty, tx] = A[3 - bx, by, ty, 31 - tx] + by

    a = np.arange(4 * 3 * 64, dtype=np.int32).reshape(4, 3, 2, 32)
    everywhere(kernel, [a], a[::-1, :, :, ::-1] + np.arange(3)[None, :, None, None])


def test_thread_indices_by_their_older_name():
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.launch_thread("threadIdx.x", 64)
            B[tx] = A[63 - tx]

    a = np.arange(64, dtype=np.int32)
    everywhere(kernel, [a], a[::-1])


def test_loops_over_blocks_stand_outside():
    with pytest.raises(TileError, match=r"over blockIdx\.x here"):

        @T.prim_func
        def inside(A: T.Tensor((64,), "int32")):
            with T.Kernel(1, threads=64):
                for bx in T.thread_binding(2, thread="blockIdx.x"):
                    A[bx] = 1

    with pytest.raises(TileError, match=r"over blockIdx\.y here"):

        @T.prim_func
        def lone(A: T.Tensor((64,), "int32")):
            for by in T.thread_binding(2, thread="blockIdx.y"):
                A[by] = 1

    with pytest.raises(TileError, match="over 32 threads"):

        @T.prim_func
        def twice(A: T.Tensor((64,), "int32")):
            for bx in T.thread_binding(2, thread="blockIdx.x"):
                for tx in T.thread_binding(64, thread="threadIdx.x"):
                    A[tx] = bx
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    A[tx] = bx
