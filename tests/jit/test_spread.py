"""Made-up values: the same by NumPy and by torch."""

from __future__ import annotations

import numpy as np
import pytest

from tileworkbench import TensorSupplyType
from tileworkbench.ir.dtype import DTYPES
from tileworkbench.jitkernel import supply
from tileworkbench.jitkernel.arrays import as_host

SHAPE = (37, 64)
KINDS = list(TensorSupplyType)
NAMES = ["bool", "int8", "int32", "uint8", "uint32", "float16", "bfloat16", "float32", "float64", "float8_e4m3fn"]


def both(name, kind):
    torch = pytest.importorskip("torch")
    dtype, rng = DTYPES[name], np.random.default_rng(5)
    spread = supply.spread_of(dtype, kind)
    made = spread.torch(dtype, SHAPE, "cpu")
    assert made.dtype is getattr(torch, name)
    return spread, spread.numpy(dtype, SHAPE, rng).astype(np.float64), as_host(made).astype(np.float64)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@pytest.mark.parametrize("name", NAMES)
def test_torch_draws_from_the_same_values_as_numpy(name, kind):
    spread, a, b = both(name, kind)
    assert a.shape == b.shape == SHAPE
    if spread.kind == "all":
        assert (a == spread.low).all() and (b == spread.low).all()
    elif spread.kind == "whole":
        step = 16 if name.startswith("float8") else 1  # what lies between is rounded away from the edges
        for values in (a, b):
            assert values.min() <= spread.low + step and spread.high - 1 - step <= values.max() <= spread.high
    elif spread.kind == "uniform":
        assert all(-1 <= v.min() < -0.9 and 0.9 < v.max() <= 1 and abs(v.mean()) < 0.1 for v in (a, b))
    else:
        assert all(abs(v.mean() - spread.low) < 0.15 and abs(v.std() - 1) < 0.1 for v in (a, b))


def test_the_programs_own_random_numbers_are_left_alone():
    torch = pytest.importorskip("torch")
    torch.manual_seed(7)
    before = torch.get_rng_state()
    for kind in KINDS:
        supply.spread_of(DTYPES["float32"], kind).torch(DTYPES["float32"], SHAPE, "cpu")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_type_that_torch_has_not_is_left_to_numpy():
    torch = pytest.importorskip("torch")
    dtype = DTYPES["bfloat16"]
    spread = supply.spread_of(dtype, TensorSupplyType.One)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(torch, "bfloat16")
        assert spread.torch(dtype, SHAPE, "cpu") is None
    for dtype in DTYPES.values():
        for kind in KINDS:
            made = supply.spread_of(dtype, kind).torch(dtype, SHAPE, "cpu")
            assert made is None or (dtype.bits >= 8 and made.shape == SHAPE)
