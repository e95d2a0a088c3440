"""TileLang's members of a decorated function."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import ArgumentError, OptionError
from tileworkbench.language.prim import PrimFunc


def scaled(n, factor=2.0, **more):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(threads=32):
            for i in T.Parallel(n):
                B[i] = A[i] * factor + more.get("shift", 0.0)

    return main


def eager(A, n_threads: int = 32):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=n_threads):
        for i in T.Parallel(N):
            B[i] = A[i] + 1.0
    return B


ONE = np.ones(64, np.float32)


def test_the_settings_are_attributes_and_may_be_assigned():
    function = tw.jit(scaled, target="cpu", out_idx=[-1], execution_backend="cython", verbose=True)
    assert (function.target, function.out_idx, function.pass_configs, function.compile_flags) == (
        "cpu",
        [-1],
        None,
        None,
    )
    assert (function.execution_backend, function.verbose, function.target_host) == ("cython", True, None)
    kernel = function(64)
    np.testing.assert_array_equal(kernel(ONE), 2 * ONE)
    function.out_idx = None
    result = np.zeros(64, np.float32)
    assert function(64) is not kernel and function(64)(ONE, result) is None
    np.testing.assert_array_equal(result, 2 * ONE)
    assert function.under(out_idx=[1]).execution_backend == "cython"


def test_the_style_is_the_mode():
    lazy, now = tw.jit(scaled, target="cpu"), tw.jit(eager, target="cpu")
    assert lazy.mode == lazy.initialize_jit_mode(64) == "lazy" and lazy.is_lazy_mode()
    assert now.mode == "eager" and not now.is_lazy_mode() and now.func.mode == "eager"
    lazy.mode = "auto"
    with pytest.raises(OptionError, match="mode='eager' of `scaled`"):
        lazy.mode = "eager"


def test_the_function_below_the_decorator_gives_text():
    function = tw.jit(scaled, target="cpu", out_idx=[-1])
    text = function.func(64, factor=3.0)
    assert isinstance(text, PrimFunc) and text.kernel.name == "main" and not function._kernel_cache
    np.testing.assert_array_equal(tw.compile(text, out_idx=[-1], target="cpu")(ONE), 3 * ONE)
    assert function.func.orig_func is scaled and "def scaled" in function.func_source
    assert list(function.signature.parameters) == ["n", "factor", "more"]
    text = tw.jit(eager, target="cpu").get_tir(T.Tensor((64,), "float32"))
    np.testing.assert_array_equal(tw.compile(text, target="cpu")(ONE), 2 * ONE)
    assert all(text.buffer_map[p] is p for p in text.params) and text.params


def test_kernels_are_kept_by_what_was_said_not_how():
    function = tw.jit(scaled, target="cpu", out_idx=[-1])
    made = function(64)
    assert function(n=64) is function(64, 2.0) is function(factor=2.0, n=64) is made
    other = function(64, shift=1.0)
    assert other is function(n=64, shift=1.0) and other is not made and len(function._kernel_cache) == 2
    np.testing.assert_array_equal(other(ONE), 3 * ONE)


@pytest.mark.parametrize("call", [lambda f: f(), lambda f: f(64, n=64), lambda f: f(64, factor={1, 2})])
def test_a_wrong_call_is_a_type_error_too(call):
    with pytest.raises(TypeError) as raised:
        call(tw.jit(scaled, target="cpu"))
    assert isinstance(raised.value, ArgumentError) and isinstance(raised.value, ValueError)


def test_the_texts_are_written_where_one_asks_for_them(tmp_path):
    folder = tmp_path / "made" / "here"
    kernel = tw.jit(scaled, target="sm_80", debug_root_path=folder)(64)
    assert (folder / "tilelang_jit_kernel_scaled.c").read_text() == kernel.source + "\n"
    assert "T.Parallel" in (folder / "tilelang_jit_program_scaled.py").read_text()
    tw.jit(eager, target="cpu", debug_root_path=str(folder))(ONE)
    assert "B[" in (folder / "tilelang_jit_program_eager.py").read_text()


def test_a_launch_without_a_grid_is_one_block():
    def counted(B: T.Tensor((64,), "int32")):
        with T.Kernel(threads=64):
            T.device_assert(T.get_thread_binding() < 64)
            B[T.get_thread_binding()] = T.get_thread_binding() + T.get_block_binding()

    for target in ("sm_80", "sm_90a"):
        kernel = tw.compile(counted, target=target, out_idx=[0])
        assert kernel.tile.grid == (1,) and kernel.registers
        for level in ("tile", "thread"):
            np.testing.assert_array_equal(tw.simulate(kernel, level=level).outputs[0], np.arange(64))
    with pytest.raises(tw.errors.LanguageError, match="1 grid dimension, `as` names 2"):

        @T.prim_func
        def named(B: T.Tensor((64,), "int32")):
            with T.Kernel(threads=64) as (bx, by):
                B[bx] = by


def test_a_kernel_of_another_name(capsys):
    text = scaled(64)
    renamed = text.with_attr("global_symbol", "doubled").with_attr({"team": "a", "tir.noalias": True})
    assert (text.attrs["global_symbol"], renamed.attrs["global_symbol"], renamed.attrs["team"]) == (
        "main",
        "doubled",
        "a",
    )
    kernel = tw.compile(renamed, out_idx=[-1], target="sm_80")
    assert kernel.name == "doubled" and "doubled" in kernel.source and "team" not in text.attrs
    np.testing.assert_array_equal(tw.compile(renamed, out_idx=[-1], target="cpu")(ONE), 2 * ONE)
    assert list(text.buffer_map) == list(text.params) and text.orig_func.__name__ == "main"
    assert kernel.torch_function is kernel
    renamed.show()
    assert "doubled" in capsys.readouterr().out
    with pytest.raises(tw.errors.LanguageError, match="global_symbol='my kernel'"):
        text.with_attr("global_symbol", "my kernel")
