"""The search over configurations on the CPU target: what it skips, what it checks, what it remembers."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench import options
from tileworkbench.errors import LanguageError, OptionError
from tileworkbench.jitkernel.arrays import as_host
from tileworkbench.tune import AutoTuner, AutotuneResult, autotune, get_autotune_inputs, set_autotune_inputs
from tileworkbench.tune.search import Settings, search

CONFIGS = [{"block": 32}, {"block": 64}]


@pytest.fixture(autouse=True)
def own_cache(tmp_path):
    with options(cache_dir=tmp_path, target="cpu"):
        yield tmp_path


def scale(n, factor=2.0, block=None):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * factor

    return main


def tuned(**settings):
    return autotune(**{"configs": CONFIGS, "warmup": 1, "rep": 2, **settings})(tw.jit(out_idx=[-1])(scale))


def test_a_factory_gives_the_best_kernel_with_its_figures():
    kernel = tuned(ref_prog=lambda a: a * 2)(100)
    assert kernel.config in CONFIGS and kernel.latency > 0 and kernel.ref_latency > 0
    a = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(kernel(a), 2 * a)


def test_configurations_that_do_not_work_are_skipped():
    function = tuned(configs=[{"block": 32}, {"block": "wide"}, {"block": -3}])
    assert function(64).config == {"block": 32}
    (found,) = function.results.values()
    assert [t.status for t in found.report.trials] == ["ok", "failed", "failed"]


def test_wrong_results_are_never_chosen():
    function = tuned(ref_prog=lambda a: a * 3)
    with pytest.raises(OptionError, match="none of 2 configurations works") as raised:
        function(64)
    assert "wrong" in raised.value.rule and "differ" in raised.value.rule


def test_given_values_are_used_without_a_search():
    function = tuned()
    kernel = function(64, block=16)
    assert kernel.config is None and all(found.config is None for found in function.results.values())
    np.testing.assert_array_equal(kernel(np.ones(64, np.float32)), np.full(64, 2, np.float32))


def test_results_are_kept_by_argument_and_on_disk(own_cache):
    function = tuned()
    assert function(64) is function(64) and function(32) is not function(64)
    files = sorted((own_cache / "tune").glob("*.json"))
    assert len(files) == 2 and all(json.loads(f.read_text())["config"] in CONFIGS for f in files)
    record = json.loads(files[0].read_text())
    for file in files:  # another process would find what stands in the files
        file.write_text(json.dumps({**record, "config": {"block": 64}, "latency": 7.5}))
    again = tuned()(64)
    assert again.config == {"block": 64} and again.latency == 7.5
    files[0].write_text("{")
    files[1].write_text("[]")
    assert tuned()(64).latency != 7.5


def test_arguments_that_do_not_matter_do_not_search_again():
    function = tuned(do_not_specialize=["factor"])
    found = function(64)
    other = function(64, factor=3.0)
    assert len(function.results) == 1 and other.config == found.config and other.latency == found.latency
    one = np.ones(64, np.float32)
    np.testing.assert_array_equal(found(one), 2 * one)
    np.testing.assert_array_equal(other(one), 3 * one)
    assert function(64) is found and function(64, factor=3.0) is other
    assert function(32).config in CONFIGS and len(function.results) == 2


def test_the_names_that_tilelang_gives_a_tuned_function():
    function = tuned()
    kernel = function(64, __return_kernel=True)
    assert kernel is function.compile(64) and function.jit_impl.out_idx == [-1]
    function._tuner_cache.clear()
    assert not function.results


def test_pass_configs_are_part_of_a_configuration():
    configs = [{"block": 32, "pass_configs": {tw.PassConfigKey.TL_ENABLE_FAST_MATH: True}}]
    kernel = tuned(configs=configs)(64)
    assert kernel.tile.attrs["build"]["fast_math"] is True


def test_configurations_may_hang_on_the_arguments():
    function = tuned(configs=lambda n, **_: [{"block": n // 2}])
    assert function(64).config == {"block": 32}


def doubling():
    """An eager function with tuned blocks, fresh for each test: what it found is kept with it."""

    @autotune(configs=CONFIGS, warmup=1, rep=2)
    @tw.jit
    def twice(A, block=32):
        N = T.const("N")
        A: T.Tensor[[N], T.float32]
        B = T.empty((N,), T.float32)
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2
        return B

    return twice


def test_an_eager_function_is_tuned_on_its_tensors_and_runs():
    twice = doubling()
    a = np.arange(48, dtype=np.float32)
    np.testing.assert_array_equal(twice(a), 2 * a)
    np.testing.assert_array_equal(twice.compile(a)(a), 2 * a)


def test_given_inputs_reach_the_reference():
    seen = []

    def reference(a):
        seen.append(as_host(a).copy())
        return a * 2

    a = np.full(64, 5, np.float32)
    with set_autotune_inputs(a):
        assert get_autotune_inputs()[0] is a
        tuned(ref_prog=reference)(64)
    assert get_autotune_inputs() is None and all((x == 5).all() for x in seen)


def test_the_object_with_chained_settings(tmp_path):
    tuner = AutoTuner.from_kernel(lambda block=None: scale(64, block=block), CONFIGS)
    tuner.set_compile_args(out_idx=[-1], target="cpu").set_profile_args(ref_prog=lambda a: a * 2)
    found = tuner.run(warmup=1, rep=2, early_stop=True)
    assert found.config in CONFIGS and found.kernel.latency == found.latency
    found.save_to_disk(tmp_path / "result")
    again = AutotuneResult.load_from_disk(tmp_path / "result")
    assert (again.config, again.latency) == (found.config, found.latency)
    assert AutotuneResult.load_from_disk(tmp_path / "nowhere") is None
    with pytest.raises(OptionError, match="no parameter tile"):
        AutoTuner.from_kernel(lambda block: None, [{"tile": 1}]).run()


def test_mistakes():
    with pytest.raises(OptionError, match="without configurations"):
        autotune(scale)
    with pytest.raises(LanguageError, match="above @jit"):
        autotune(configs=CONFIGS)(scale)
    with pytest.raises(OptionError, match="has no parameter tile"):
        tuned(configs=[{"tile": 1}])(64)
    with pytest.raises(OptionError, match="no configurations"):
        tuned(configs=[])(64)
    with pytest.raises(OptionError, match="at least 1"):
        tuned(early_stop_factor=0.5)


def test_scalars_are_not_made_up():
    def shifted(n, block=None):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), by: T.float32, B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] + by

        return main

    function = autotune(configs=CONFIGS, warmup=1, rep=2)(tw.jit(out_idx=[-1])(shifted))
    with pytest.raises(ValueError, match="set_autotune_inputs"):
        function(64)
    with set_autotune_inputs(np.ones(64, np.float32), 2.5):
        kernel = function(64)
    np.testing.assert_array_equal(kernel(np.ones(64, np.float32), 2.5), np.full(64, 3.5, np.float32))


def test_an_eager_function_is_tuned_for_sizes_without_tensors():
    twice = doubling()
    a = np.arange(64, dtype=np.float32)
    kernel = twice.compile(N=64)
    assert kernel.config in CONFIGS
    np.testing.assert_array_equal(kernel(a), 2 * a)


def test_hopeless_configurations_run_only_a_few_times():
    """Of a search over 40 runs each: the slow one is told after 10, and the best is the same."""
    counts, order = {}, []

    class Timed:
        def __init__(self, name, milliseconds):
            self.name, self.milliseconds = name, milliseconds

        def get_profiler(self, _):
            return self

        def inputs(self):
            return []

        def unchanged(self, ready):
            return contextlib.nullcontext()

        def samples(self, func, ready, n_repeat=0, **_):
            counts[self.name] = counts.get(self.name, 0) + n_repeat
            order.append(self.name)
            return [self.milliseconds] * n_repeat

    made = {"middle": 2.0, "slow": 9.0, "best": 1.0, "close": 1.5, "beaten": 2.1}
    report = search(lambda c: Timed(c["name"], made[c["name"]]), [{"name": n} for n in made], Settings(rep=40))
    assert counts == {"middle": 40, "slow": 10, "best": 40, "close": 40, "beaten": 10}
    assert list(dict.fromkeys(order)) == list(made) and report.best.config == {"name": "best"}
    assert [t.latency for t in report.trials] == list(made.values()) and {t.status for t in report.trials} == {"ok"}


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_arguments_that_a_kernel_updates_are_as_before(library):
    """Triton issues 6547, 781, 9230: `x += 1` tuned over 8 settings gives x + 1."""

    @autotune(configs=[{"block": 8 * n} for n in range(1, 9)], warmup=2, rep=3)
    @tw.jit
    def increase(A, block=8):
        N = T.const("N")
        A: T.Tensor[[N], T.float32]
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] = A[bx * block + i] + 1.0

    a = np.arange(64, dtype=np.float32)
    value = a.copy() if library == "numpy" else pytest.importorskip("torch").from_numpy(a.copy())
    increase(value)
    np.testing.assert_array_equal(as_host(value), a + 1)
    increase(value)
    np.testing.assert_array_equal(as_host(value), a + 2)
    with set_autotune_inputs(value):
        increase.results.clear()
        increase.compile(value)
    np.testing.assert_array_equal(as_host(value), a + 2)
