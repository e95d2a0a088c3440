"""TVM's spellings inside a kernel: T.While, T.tvm_storage_sync, and the launch as an object."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import LanguageError

from .harness import everywhere


def test_a_block_that_is_repeated():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(8, threads=32) as bx:
            n, steps = T.alloc_var("int32"), T.alloc_var("int32")
            n = A[bx]
            steps = 0
            with T.While(n != 1):
                n = T.if_then_else(n % 2 == 0, n // 2, 3 * n + 1)
                steps += 1
            B[bx] = steps

    def collatz(n):
        steps = 0
        while n != 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps

    a = np.array([1, 2, 3, 6, 7, 9, 16, 27], "int32")
    everywhere(kernel, [a], np.array([collatz(n) for n in a.tolist()]))


def test_a_tiles_element_is_loaded_again():
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            most = T.alloc_fragment((1,), "float32")
            x = T.alloc_fragment((64,), "float32")
            T.copy(A, x)
            most[0] = 100.0
            with T.While(most[0] > 10.0):
                for i in T.Parallel(64):
                    x[i] = x[i] + 1
                most[0] = most[0] / 2
            T.copy(x, B)

    a = np.arange(64, dtype="float32")
    everywhere(kernel, [a], a + 4, ("sm_80", "sm_90a"))


def test_meetings_by_memory():
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(threads=64):
            s = T.alloc_shared((64,), "int32")
            t = T.get_thread_binding()
            s[t] = A[t]
            T.tvm_storage_sync("shared")
            B[t] = s[63 - t]
            T.tvm_storage_sync("warp")

    a = np.arange(64, dtype="int32")
    everywhere(kernel, [a], a[::-1], ("sm_80", "sm_90a"))


def reversed_by_a_macro(A, B):
    frame = T.KernelLaunchFrame.Current()
    (tx, ty, _), threads = frame.threads, frame.get_num_threads()
    place = frame.get_block_binding() * threads + ty * frame.get_thread_extent(0) + tx
    B[place] = A[threads * frame.get_block_extent(0) - 1 - place]


def test_the_launch_as_an_object():
    assert T.KernelLaunchFrame.Current() is None
    macro = T.macro(reversed_by_a_macro)

    @T.prim_func
    def kernel(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(2, threads=(32, 2)):
            macro(A, B)

    a = np.arange(128, dtype="int32")
    everywhere(kernel, [a], a[::-1], ("sm_80", "sm_90a"))


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: T.While(True), "always true"),
        (lambda: T.While(T.int32(0)), "always false"),
        (lambda: T.tvm_storage_sync("global"), "tvm_storage_sync"),
    ],
)
def test_refusals(use, words):
    def kernel(A: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            use()
            A[bx] = 1

    with pytest.raises(LanguageError, match=words):
        tw.compile(kernel, target="sm_80")
