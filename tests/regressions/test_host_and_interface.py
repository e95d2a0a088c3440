"""Calls with unusual arrays, launches that make no sense, messages with their places, and builds that do not end."""

from __future__ import annotations

import importlib.util
import itertools
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tests.language.cells import marked, run_cell
from tileworkbench.errors import BuildError, LaunchError, SimulationError, TileError

from .machines import Machine


@pytest.fixture(params=["cpu", pytest.param("card", marks=pytest.mark.gpu)])
def compiled(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`tw.compile` for the CPU target, and for a card with arrays of the host brought there."""
    target = "cpu" if request.param == "cpu" else "auto"
    return lambda func, **how: tw.compile(func, target=target, **how)


def plus_one(M: Any, N: Any):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
            for i, j in T.Parallel(32, 32):
                B[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j] + 1

    return kernel


def product(M: Any, N: Any, K: Any):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])

    return kernel


def test_tl1697_a_product_over_an_empty_dimension_is_zero(compiled: Callable[..., Any]) -> None:
    kernel = compiled(product(*T.dynamic("m n k")), out_idx=[-1])
    for m, n, k in ((64, 64, 0), (3, 5, 0), (3, 5, 7)):
        a, b = np.ones((m, k), np.float16), np.ones((k, n), np.float16)
        np.testing.assert_array_equal(kernel(a, b), np.full((m, n), k, np.float32))


def test_tl1697_an_empty_grid_launches_nothing(compiled: Callable[..., Any]) -> None:
    """No work is said to be no work, and what the output held stays."""
    kernel = compiled(plus_one(*T.dynamic("m n")))
    with pytest.raises(LaunchError, match="grid"):
        kernel(np.zeros((0, 5), np.float32), np.zeros((0, 5), np.float32))
    a, b = np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    kernel(a, b)
    assert (b == 1).all()


@pytest.mark.parametrize("library", ("numpy", "torch"))
def test_tl1404_views_of_transposed_arrays(compiled: Callable[..., Any], library: str) -> None:
    """Read and written by their strides, or refused with the name, what was found and what is to be done."""
    kernel = compiled(plus_one(*T.dynamic("m n")))
    whole = np.arange(12 * 33, dtype=np.float32).reshape(12, 33)
    out = np.full((40, 12), -7, np.float32)
    target = np.full((12, 33), -7, np.float32)
    torch = pytest.importorskip("torch") if library == "torch" else None
    source, first, second = (torch.from_numpy(x) if torch else x for x in (whole, out, target))
    try:
        kernel(source.T, first[:33])
        np.testing.assert_array_equal(out, np.concatenate([whole.T + 1, np.full((7, 12), -7, np.float32)]))
        kernel(source.T, second.T)
        np.testing.assert_array_equal(target, whole + 1)
    except LaunchError as error:
        text = str(error)
        assert "A" in text and any(word in text for word in ("contiguous", "stride", "on the CPU"))
        assert error.rule and error.fix
        assert (out == -7).all() and (target == -7).all()


WRONG = [
    ("rank", (5,), "2"),
    ("more dimensions", (4, 8, 1), "2"),
    ("swapped", (8, 4), "4"),
    ("short", (3, 8), "4"),
    ("empty", (4, 0), "8"),
]


@pytest.mark.parametrize(("what", "shape", "expected"), WRONG, ids=[w for w, _, _ in WRONG])
def test_tl1011_a_wrong_shape_never_launches(
    compiled: Callable[..., Any], what: str, shape: Any, expected: str
) -> None:
    kernel = compiled(plus_one(4, 8))
    b = np.full((4, 8), -7, np.float32)
    with pytest.raises(LaunchError) as error:
        kernel(np.zeros(shape, np.float32), b)
    text = str(error.value)
    assert "A" in text and expected in text and (str(len(shape)) in text or str(shape) in text)
    assert (b == -7).all()


@pytest.mark.parametrize("wrong", (np.float64, np.float16, np.int32))
def test_cl2308_host_types_that_do_not_match(compiled: Callable[..., Any], wrong: Any) -> None:
    kernel = compiled(plus_one(4, 8))
    b = np.full((4, 8), -7, np.float32)
    with pytest.raises(LaunchError, match="float32") as error:
        kernel(np.zeros((4, 8), wrong), b)
    assert np.dtype(wrong).name in str(error.value) and (b == -7).all()


def test_cl2308_a_build_has_a_limit_of_time() -> None:
    """Hundreds of different products in one thread: the device compiler is stopped."""
    pytest.importorskip("cuda.bindings")

    @T.prim_func
    def endless(A: T.Tensor((64, 64), "float64"), B: T.Tensor((64, 64), "float64")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            x = T.alloc_local((64,), "float64")
            for i in T.unroll(64):
                x[i] = A[tx, i]
            for i in T.unroll(60):
                for j in T.unroll(60):
                    x[(i + j) % 64] = T.sin(x[i]) / T.exp(x[j]) + x[(i * j) % 64]
            for i in T.unroll(64):
                B[tx, i] = x[i]

    with tw.options(compile_timeout=0.5, cache=False), pytest.raises(BuildError, match="took longer than") as error:
        tw.compile(endless, target="sm_90a")
    assert "compile_timeout" in str(error.value)


THREADS = ["-1", "0", "1025", "1.5", '"128"', "True", "(64, -2)", "(64, 64)", "(1, 1, 1, 1)", "n"]


@pytest.mark.parametrize("threads", THREADS)
def test_tl2633_thread_counts_that_no_block_has(threads: str) -> None:
    with pytest.raises(TileError) as error:
        run_cell(f"""
            @T.prim_func
            def kernel(A: T.Tensor((64,), "float32"), n: T.int32):
                with T.Kernel(1, threads={threads}) as bx:
                    A[0] = 1
            """)
    loc = error.value.loc
    assert loc is not None and loc.line == 3 and loc.source_line().strip().startswith("with T.Kernel")
    assert error.value.rule and error.value.fix


@pytest.mark.parametrize("name", ("(pid,)", "pid"))
def test_tl830_the_only_block_index_in_a_tuple(machine: Machine, name: str) -> None:
    kernel = run_cell(f"""
        @T.prim_func
        def kernel(A: T.Tensor((96,), "int32")):
            with T.Kernel(3, threads=32) as {name}:
                for i in T.Parallel(32):
                    A[pid * 32 + i] = pid * 100 + i
        """)["kernel"]
    machine.check(kernel, [], (np.arange(96) // 32 * 100 + np.arange(96) % 32).astype(np.int32))


@pytest.mark.parametrize("given", ((1, 1, 1), (0, 1, 1), (1, 2, 1)))
def test_tl3019_a_plain_assert_is_a_check_on_the_device(given: tuple[int, ...]) -> None:
    """True: nothing happens. False at run time: the simulators name the line and the words."""
    kernel = run_cell("""
        @T.prim_func
        def kernel(A: T.Tensor((3,), "int32"), Out: T.Tensor((3,), "int32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(3):
                    assert A[i] == 1, "one is wanted"
                    Out[i] = A[i] + 1
        """)["kernel"]
    a, out = np.array(given, np.int32), np.zeros(3, np.int32)
    for level, target in (("tile", None), ("thread", "sm_80"), ("thread", "gfx942")):
        if all(v == 1 for v in given):
            tw.simulate(kernel, a, out, level=level, target=target)
            assert (out == 2).all()
            continue
        with pytest.raises(SimulationError, match="one is wanted") as error:
            tw.simulate(kernel, a, out, level=level, target=target)
        assert error.value.loc is not None and error.value.loc.source_line().strip().startswith("assert A[i] == 1")


def test_tl3019_an_assert_that_fails_while_reading_shows_its_line() -> None:
    with pytest.raises(AssertionError, match="two is wanted") as error:
        run_cell("""
            @T.prim_func
            def kernel(A: T.Tensor((3,), "int32")):
                with T.Kernel(1, threads=32):
                    assert A.shape[0] == 2, "two is wanted"
                    A[0] = 1
            """)
    assert any(
        f.filename.startswith("<cell") and f.lineno == 4 for f in traceback.extract_tb(error.value.__traceback__)
    )


MISTAKES = {
    "too few indices": "A[0, 0] = 1\n        for i in T.Parallel(4):\n            B[i] = «A[i]»",
    "too many indices": "x = 1\n        B[0] = «A[0, 1, 2]»",
    "an unknown name": "for i in T.Parallel(4):\n            B[i] = B[i] + «missing»",
    "an unknown function": "for i in T.Parallel(4):\n            B[i] = «T.exp3»(B[i])",
    "behind a long expression": "B[0] = (\n            A[0, 0]\n            + «A[1]»\n        )",
    "shapes": "S = T.alloc_shared((8, 8), 'float32')\n        «T.copy(A, S)»",
}
NUMBER = itertools.count()


@pytest.mark.parametrize("form", ("cell", "file", "exec"))
@pytest.mark.parametrize("mistake", MISTAKES)
def test_tl1832_a_message_has_place_caret_rule_and_fix(tmp_path, mistake: str, form: str) -> None:  # type: ignore[no-untyped-def]
    """Cells, files and text given to exec: the error names file, line and column, and underlines the span."""
    text, (line, col, end_line, end_col) = marked(f"""
import tileworkbench.language as T

@T.prim_func
def kernel(A: T.Tensor((64, 8), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        {MISTAKES[mistake]}
""")
    with pytest.raises(TileError) as error:
        if form == "cell":
            run_cell(text)
        else:
            path = tmp_path / f"user_kernel_{next(NUMBER)}.py"
            path.write_text(text)
            if form == "file":
                spec = importlib.util.spec_from_file_location(path.stem, path)
                spec.loader.exec_module(importlib.util.module_from_spec(spec))  # type: ignore[union-attr]
            else:
                exec(compile(text, str(path), "exec", dont_inherit=True), {"T": T})
    loc = error.value.loc
    assert loc is not None and (loc.line, loc.col, loc.end_line, loc.end_col) == (line, col, end_line, end_col)
    lines = str(error.value).splitlines()
    shown = next(i for i, row in enumerate(lines) if "|" in row and text.splitlines()[line - 1].strip() in row)
    caret = lines[shown + 1]
    start = lines[shown].index(text.splitlines()[line - 1].strip())
    indent = len(text.splitlines()[line - 1]) - len(text.splitlines()[line - 1].lstrip())
    assert caret.index("^") == start + col - indent and caret.count("^") == end_col - col
    assert f"{line}:{col + 1}" in str(error.value) and (".py" in str(error.value)) == (form != "cell")
    assert error.value.rule and error.value.fix
