"""What is kept is given back only where it belongs, and tuning leaves the caller's arrays as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench import options
from tileworkbench.tune import autotune, set_autotune_inputs

FACTOR = 2
HELPED = 3


@pytest.fixture(autouse=True, params=["cpu", pytest.param("card", marks=pytest.mark.gpu)])
def own_cache(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """A cache of the test's own; kernels run on the CPU target, or on a card with arrays of the host brought there."""
    with options(cache_dir=tmp_path, target="cpu" if request.param == "cpu" else "auto"):
        yield tmp_path


def scale(n: int, columns: int = 1, by: float = 2.0, block: int = 32):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * by
                C[bx * block + i] = A[bx * block + i] + columns

    return kernel


def tuned(out_idx: Any, configs: Any = ({"block": 32}, {"block": 64})):  # type: ignore[no-untyped-def]
    return autotune(configs=list(configs), warmup=1, rep=2)(tw.jit(out_idx=out_idx)(scale))


def test_tl1250_a_winner_for_one_shape_is_not_given_for_another() -> None:
    """Shape, scalar argument, outputs and the set of configurations belong to what is remembered, also on disk."""
    for function in (tuned([-2, -1]), tuned([-2, -1])):  # the second finds the first one's files
        for n, by in ((64, 2.0), (96, 2.0), (64, 5.0), (7, 2.0)):
            a = np.arange(n, dtype=np.float32)
            kernel = function(n, by=by)
            b, c = kernel(a)
            assert b.shape == (n,) and kernel.config in ({"block": 32}, {"block": 64})
            np.testing.assert_array_equal(b, a * np.float32(by))
            np.testing.assert_array_equal(c, a + 1)


def test_tl2791_other_outputs_and_other_configurations_are_asked_anew() -> None:
    a = np.arange(64, dtype=np.float32)
    b, c = tuned([1, 2])(64)(a)
    np.testing.assert_array_equal(b, a * 2)
    given = np.full(64, -7, np.float32)
    only = tuned([2])(64)(a, given)
    np.testing.assert_array_equal(only, a + 1)
    np.testing.assert_array_equal(given, a * 2)
    assert tuned([1, 2], ({"block": 16},))(64).config == {"block": 16}
    assert tuned([1, 2], ({"block": 8}, {"block": 16}))(64).config in ({"block": 8}, {"block": 16})


def test_tl1250_tensors_of_another_shape_are_tuned_anew() -> None:
    @autotune(configs=[{"block": 16}, {"block": 64}], warmup=1, rep=2)
    @tw.jit
    def twice(A, block=16):  # type: ignore[no-untyped-def]
        N = T.const("N")
        A: T.Tensor[[N], T.float32]
        B = T.empty((N,), T.float32)
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2
        return B

    for n in (64, 100, 7, 64):
        a = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(twice(a), 2 * a)
    assert len(twice.results) == 3


def test_tr6547_an_argument_updated_in_place_is_updated_once() -> None:
    """x += 1 tuned over 8 settings gives x + 1, and x stays as it was where the search alone is asked for."""

    def increase(n, block=None):  # type: ignore[no-untyped-def]
        @T.prim_func
        def kernel(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "int32")):
            with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
                for i in T.Parallel(block):
                    X[bx * block + i] += 1
                    Y[bx * block + i] = Y[bx * block + i] * 2

        return kernel

    function = autotune(configs=[{"block": 8 * k} for k in range(1, 9)], warmup=1, rep=2)(tw.jit(increase))
    x, y = np.random.default_rng(1).standard_normal(100).astype(np.float32), np.arange(100, dtype=np.int32)
    given_x, given_y = x.copy(), y.copy()
    with set_autotune_inputs(given_x, given_y):
        kernel = function(100)
    assert given_x.tobytes() == x.tobytes() and given_y.tobytes() == y.tobytes()
    (found,) = function.results.values()
    assert [t.status for t in found.report.trials] == ["ok"] * 8
    kernel(given_x, given_y)
    np.testing.assert_array_equal(given_x, x + 1)
    np.testing.assert_array_equal(given_y, y * 2)


def test_tr781_each_trial_starts_from_the_same_values() -> None:
    """A setting whose result is judged after others have run is judged on the arguments as they were given."""
    seen: list[np.ndarray] = []

    def reference(x):  # type: ignore[no-untyped-def]
        seen.append(np.array(x.cpu() if hasattr(x, "cpu") else x))
        return x + 1

    def increase(n, block=None):  # type: ignore[no-untyped-def]
        @T.prim_func
        def kernel(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
                for i in T.Parallel(block):
                    X[bx * block + i] += 1
                    Y[bx * block + i] = X[bx * block + i]

        return kernel

    settings = {"warmup": 1, "rep": 2, "ref_prog": reference}
    function = autotune(configs=[{"block": 8}, {"block": 16}, {"block": 32}], **settings)(
        tw.jit(out_idx=[-1])(increase)
    )
    x = np.arange(40, dtype=np.float32)
    with set_autotune_inputs(x):
        function(40)
    (found,) = function.results.values()
    assert [t.status for t in found.report.trials] == ["ok"] * 3
    assert seen and all((s == np.arange(40)).all() for s in seen)
    np.testing.assert_array_equal(x, np.arange(40))


def helper(x):  # type: ignore[no-untyped-def]
    return x * HELPED


@tw.jit(out_idx=[-1])
def factory(n: int):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = helper(A[i]) + FACTOR

    return kernel


@tw.jit
def eager(A):  # type: ignore[no-untyped-def]
    N = T.const("N")
    A: T.Tensor[(N,), "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            B[i] = helper(A[i]) + FACTOR
    return B


@pytest.mark.parametrize("tuning", (False, True))
def test_nb8359_a_changed_global_is_never_frozen(monkeypatch: pytest.MonkeyPatch, tuning: bool) -> None:
    """Built anew with the values of now: of the module, of a helper, in factories and eager functions, tuned or not."""
    lazy = autotune(configs=[{}], warmup=1, rep=2)(factory) if tuning else factory
    direct = autotune(configs=[{}], warmup=1, rep=2)(eager) if tuning else eager
    a = np.arange(8, dtype=np.float32)
    for helped, factor in ((3, 2), (3, 5), (7, 5), (3, 2)):
        monkeypatch.setitem(globals(), "HELPED", helped)
        monkeypatch.setitem(globals(), "FACTOR", factor)
        np.testing.assert_array_equal(lazy(8)(a), a * helped + factor)
        np.testing.assert_array_equal(direct(a), a * helped + factor)


def test_tr3770_a_kernel_in_hand_keeps_the_values_that_it_was_built_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one program; asking its factory again gives the other."""
    a = np.arange(8, dtype=np.float32)
    kernel = factory(8)
    monkeypatch.setitem(globals(), "FACTOR", 11)
    np.testing.assert_array_equal(kernel(a), a * 3 + 2)
    other = factory(8)
    assert other is not kernel
    np.testing.assert_array_equal(other(a), a * 3 + 11)
