"""Names that TileLang's users import besides the language."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
from tileworkbench.errors import OptionError, SimulationError
from tileworkbench.jitkernel.arrays import as_host
from tileworkbench.profiler import do_bench

from .kernels import copy_kernel, gemm


def test_arithmetic():
    assert [tw.cdiv(a, 4) for a in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [tw.next_power_of_2(n) for n in (1, 2, 3, 4, 5, 1025)] == [1, 2, 4, 4, 8, 2048]


def test_keys_of_pass_configs_are_strings_and_enum_members():
    key = tw.PassConfigKey.TL_ENABLE_FAST_MATH
    assert key.value == "tl.enable_fast_math" and len(tw.PassConfigKey) == 58
    kernel = tw.compile(copy_kernel(8, 8), target="sm_80", pass_configs={key: True})
    assert dict(kernel.variant.source.options)["fast_math"] == "1"


def test_a_key_turns_the_copy_engine_off_and_another_the_roles():
    plain = tw.compile(gemm(128, 128, 64), target="sm_90a")
    assert any(d.chosen == "tma" for d in plain.plan.decisions) and len(plain.plan.roles) > 1
    without = tw.compile(gemm(128, 128, 64), target="sm_90a", pass_configs={"tl.disable_tma_lower": True})
    assert not any(d.chosen == "tma" for d in without.plan.decisions)
    one = tw.compile(gemm(128, 128, 64), target="sm_90a", pass_configs={"tl.disable_warp_specialized": True})
    assert len(one.plan.roles) == 1


def test_cache_switches():
    before = tw.is_cache_enabled()
    try:
        tw.disable_cache()
        assert not tw.is_cache_enabled() and not tw.options.cache
        tw.enable_cache()
        assert tw.is_cache_enabled()
    finally:
        del tw.options.cache
    assert tw.is_cache_enabled() == before


def test_the_profilers_assertions():
    profiler = tw.compile(gemm(64, 64, 32), out_idx=[-1], target="cpu").get_profiler(tw.TensorSupplyType.Integer)
    profiler.assert_allclose(product, atol=0, rtol=0)
    profiler.assert_consistent(repeat=2)
    with pytest.raises(SimulationError, match="elements differ"):
        profiler.assert_allclose(lambda a, b: product(a, b) + 1)
    in_place = tw.compile(copy_kernel(8, 8), target="cpu").get_profiler()
    in_place.assert_allclose(lambda a: a + a)
    with pytest.raises(OptionError, match="Often"):
        tw.compile(copy_kernel(8, 8), target="cpu").get_profiler("Often")


def product(a, b):
    """Of whole numbers, so that every order and accumulator gives the same."""
    return as_host(a).astype(np.float32) @ as_host(b).astype(np.float32)


def test_inputs_by_supply_type():
    kernel = tw.compile(copy_kernel(8, 8), target="cpu")
    for supply, expected in ((tw.TensorSupplyType.Zero, 0), (tw.TensorSupplyType.One, 1)):
        assert (as_host(kernel.get_profiler(supply).inputs()[0]) == expected).all()
    values = as_host(kernel.get_profiler(tw.TensorSupplyType.Normal).inputs()[0])
    assert len(np.unique(values)) > 30


def test_do_bench_of_any_function():
    calls = []
    assert do_bench(lambda: calls.append(1), warmup=0, rep=1) >= 0 and len(calls) >= 4
