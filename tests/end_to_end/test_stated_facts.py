"""What a kernel says of every call, by T.assume and by `assert` before T.Kernel: checked by both machines and handed to
the launcher; used as a fact by every variant."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, integers, lowered
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import AssumptionError, LanguageError, LaunchError
from tileworkbench.passes.facts import general, kernel_facts
from tileworkbench.pipeline import run_passes
from tileworkbench.runtime.hostexpr import compiled
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

GOAL = Target.of("sm_90a")


def doubled(stated):
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((4, n), "float32"), k: T.int32, B: T.Tensor((4, n), "float32")):
        with T.Kernel(4, threads=32) as bx:
            T.assume(stated(n, k))
            for i in T.serial(T.ceildiv(n, 32)):
                for j in T.Parallel(32):
                    if i * 32 + j < n:
                        B[bx, i * 32 + j] = A[bx, i * 32 + j] * 2

    return kernel


STATED = {
    "n % 4 == 0": lambda n, k: n % 4 == 0,
    "n > k": lambda n, k: n > k,
}


@pytest.mark.parametrize("text", ["n % 4 == 0", "n > k"])
def test_what_is_assumed_of_arguments_is_checked(text: str) -> None:
    kernel = doubled(STATED[text])
    a = integers(1, (4, 36))
    everywhere(kernel, [a, np.int32(7)], a * 2, ("sm_80", "sm_90a"))
    wrong = [np.ones((4, 6), np.float32), 9, np.zeros((4, 6), np.float32)]
    with pytest.raises(AssumptionError, match=f"Assume: {text}") as error:
        tile.run(kernel.kernel, wrong)
    assert isinstance(error.value, RuntimeError) and isinstance(error.value, LaunchError)
    for tiles in (kernel.kernel, general(kernel.kernel)):
        made = run_passes(tiles, GOAL)
        with pytest.raises(LaunchError, match=text):
            thread.run(made, wrong, target=GOAL, outputs=[2])
        assert [f.text for f in emit(made, GOAL).facts if f.required] == [f"Assume: {text}"]


def test_a_divisor_that_is_stated_is_known_to_every_variant() -> None:
    kernel = doubled(STATED["n % 4 == 0"]).kernel
    (n,) = kernel.symbols()
    assert kernel_facts(general(kernel), GOAL).divisors[n] == 4


def test_what_only_the_device_knows_is_not_checked() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), k: T.int32, x: T.float32, B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            T.assume(A[0] > 0)
            T.assume(x > 5)
            T.assume(T.get_thread_binding() + k < n)
            if k > 100:
                T.assume(n % 64 == 0)
            for i in T.serial(n):
                T.assume(i > 3)
                B[i] = A[i]

    assert kernel.kernel.assumed == ()
    a = integers(2, (40,))
    everywhere(kernel, [a, np.int32(1), np.float32(2)], a, ("sm_90a",))


@pytest.mark.parametrize(("n", "k", "holds"), [(12, 5, True), (12, 6, False), (16, 5, False), (20, 100, True)])
def test_logic_of_what_is_assumed(n: int, k: int, holds: bool) -> None:
    size = T.dynamic("size")

    @T.prim_func
    def kernel(A: T.Tensor((size,), "float32"), k: T.int32, B: T.Tensor((size,), "float32")):
        with T.Kernel(1, threads=32):
            T.assume((size % 8 == 4 and k * 2 + 1 <= size) or (T.max(k, 3) // 9 == 11 and not (k == 7 or k == 8)))
            for i in T.serial(size):
                B[i] = A[i]

    (fact,) = emit(lowered(kernel, "sm_90a"), GOAL).facts[:1]
    assert fact.required and bool(compiled(fact.condition)({"size": n, "k": k})) is holds
    args = [np.ones(n, np.float32), k, np.zeros(n, np.float32)]
    if holds:
        np.testing.assert_array_equal(tile.run(kernel.kernel, args).outputs[0], args[0])
        return
    with pytest.raises(AssumptionError):
        tile.run(kernel.kernel, args)


def test_asserts_before_the_kernel_are_checked_at_the_call() -> None:
    m = T.dynamic("m")

    @T.prim_func
    def kernel(A: T.Tensor((m,), "int32"), B: T.Tensor((m,), "int32")):
        assert m % 32 == 0, "whole warps only"
        with T.Kernel(m // 32, threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] + 1

    a = integers(3, (96,), "int32")
    everywhere(kernel, [a], a + 1)
    with pytest.raises(AssumptionError, match="whole warps only"):
        tile.run(kernel.kernel, [a[:40], np.zeros(40, np.int32)])
    with pytest.raises(AssumptionError, match="whole warps only"):
        thread.run(lowered(kernel, "sm_80"), [a[:40], np.zeros(40, np.int32)], target=Target.of("sm_80"))


def test_asserts_before_the_kernel_cannot_read_tensors() -> None:
    with pytest.raises(LanguageError, match=r"before T\.Kernel of what only the device knows"):

        @T.prim_func
        def kernel(A: T.Tensor((32,), "int32")):
            assert A[0] > 3
            with T.Kernel(1, threads=32):
                A[1] = 2
