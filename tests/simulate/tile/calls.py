"""Calling kernels in tests: inputs that are exact, and outputs that must be wholly written."""

from __future__ import annotations

import numpy as np

from tileworkbench.ir.dtype import DTYPES
from tileworkbench.simulate.tile import run


def numpy_dtype(name):
    return DTYPES[name].numpy


def integers(seed, shape, dtype, high=5):
    """Whole numbers in -high … high."""
    return np.random.default_rng(seed).integers(-high, high + 1, shape).astype(numpy_dtype(dtype))


def call(function, *args):
    """Runs a kernel of T text; every element of what it writes must be written."""
    result = run(function.kernel, args)
    assert not result.unwritten
    return result


def returned(function, shape, dtype, *args):
    """The tensor that the kernel writes, passed as its last argument."""
    out = np.full(shape, 77, dtype=numpy_dtype(dtype))
    call(function, *args, out)
    return out
