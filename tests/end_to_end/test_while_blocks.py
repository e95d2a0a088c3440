"""TVM's spellings inside a kernel: T.While, T.If, T.tvm_storage_sync, and the launch as an object."""

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


def test_choices():
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32"), n: T.int32, C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            x = T.alloc_var("int32", 5)
            with T.If(A[t] > 3), T.Then():
                x = 1
            with T.If(t % 2 == 0):
                with T.Then(), T.If(True):
                    with T.Then():
                        x += 10
                    with T.Else():
                        x += 1000
                with T.Else(), T.If(t > 32):
                    with T.Then():
                        x += 20
                    with T.Else():
                        x += 30
            B[t] = x
            with T.If(n > 4):
                with T.Then():
                    C[t] = x + n
                with T.Else():
                    C[t] = 0

    a, t = np.arange(64, dtype="int32") % 7, np.arange(64)
    want = np.where(a > 3, 1, 5) + np.where(t % 2 == 0, 10, np.where(t > 32, 20, 30))
    for target in ("sm_80", "sm_90a", "cpu"):
        made = tw.compile(kernel, target=target, out_idx=[1, 3])
        for level in ("tile", "thread") if target != "cpu" else ("tile",):
            for n in (3, 7):
                b, c = tw.simulate(made, a, n, level=level).outputs
                np.testing.assert_array_equal(b, want)
                np.testing.assert_array_equal(c, want + n if n > 4 else 0 * want)
        assert target == "cpu" or made.registers


def without_then(A):
    with T.If(A[0] > 0):
        pass


def beside_then(A):
    with T.If(A[0] > 0):
        A[1] = 1
        with T.Then():
            A[2] = 1


def else_first(A):
    with T.If(A[0] > 0), T.Else():
        A[1] = 1


def then_in_a_loop(A):
    with T.If(A[0] > 0):
        for i in T.serial(2):
            with T.Then():
                A[i] = 1


def then_alone(A):
    with T.Then():
        A[0] = 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (without_then, "T.If without T.Then"),
        (beside_then, "directly in T.If"),
        (else_first, "before T.Then"),
        (then_in_a_loop, "T.Then outside of T.If"),
        (then_alone, "T.Then outside of T.If"),
    ],
)
def test_choices_that_are_none(body, words):
    macro = T.macro(body)

    def kernel(A: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            macro(A)

    with pytest.raises(LanguageError, match=words):
        tw.compile(kernel, target="sm_80")


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
