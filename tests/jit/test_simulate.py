"""tileworkbench.simulate: the same kernel at the level of tiles and of threads."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import LaunchError, OptionError
from tileworkbench.pipeline import run_passes
from tileworkbench.simulate import thread
from tileworkbench.target import Target

from .kernels import copy_kernel, gemm


def test_tile_level():
    a = np.arange(40 * 33).reshape(40, 33).astype("float16") % 19
    run = tw.simulate(tw.compile(copy_kernel(40, 33), out_idx=[-1], target="cpu"), a)
    assert np.array_equal(run.outputs[0], a * 2)


@pytest.mark.parametrize("schedule", ["eager", "latest", "random"])
def test_thread_level(schedule):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-2, 3, shape).astype("float16") for shape in ((70, 40), (40, 64)))
    kernel = tw.compile(gemm(70, 64, 40), out_idx=[-1], target="sm_80")
    run = tw.simulate(kernel, a, b, level="thread", schedule=schedule)
    assert np.array_equal(run.outputs[0], a.astype("float64") @ b.astype("float64"))


@pytest.mark.parametrize("columns", [32, 33])
def test_the_thread_level_runs_the_variant_that_takes_the_arguments(columns):
    m, n = T.dynamic("m n")
    kernel = tw.compile(copy_kernel(m, n), out_idx=[-1], target="sm_80")
    a = np.arange(40 * columns).reshape(40, columns).astype("float16") % 19
    assert np.array_equal(tw.simulate(kernel, a, level="thread").outputs[0], a * 2)


def test_a_variant_refuses_arguments_that_it_was_not_built_for():
    m, n = T.dynamic("m n")
    target = Target.of("sm_80")
    fast = run_passes(copy_kernel(m, n).kernel, target)
    a, b = np.ones((40, 33), "float16"), np.zeros((40, 33), "float16")
    with pytest.raises(LaunchError, match="n is a multiple of 8"):
        thread.run(fast, [a, b], target=target)
    assert thread.unmet(fast, [a, b]).text.startswith("n is a multiple of 8")
    assert thread.unmet(fast, [a[:, :32].copy(), b[:, :32].copy()]) is None


def test_wrong_words():
    kernel = copy_kernel(8, 8)
    a = np.zeros((8, 8), "float16")
    with pytest.raises(OptionError, match="level"):
        tw.simulate(kernel, a, a, level="warp")
    with pytest.raises(OptionError, match="cpu"):
        tw.simulate(kernel, a, a, level="thread", target="cpu")


def test_the_room_keeps_its_name():
    import tileworkbench.simulate.tile as room

    assert callable(tw.simulate) and callable(room.run)
