"""The machine's own operand and address tables against the layout room's: two readings of the manuals."""

from __future__ import annotations

import numpy as np
import pytest

from tileworkbench.ir.dtype import DTYPES
from tileworkbench.ir.expr import Buffer
from tileworkbench.ir.instr import Desc
from tileworkbench.layout.descriptor import Descriptor, operand_offsets
from tileworkbench.layout.mfma import mfma_atoms
from tileworkbench.layout.mma import mma_atoms
from tileworkbench.layout.tma import box_offsets
from tileworkbench.layout.wgmma import wgmma_a_fragment, wgmma_accumulator_fragment
from tileworkbench.simulate.thread.boxes import swizzle
from tileworkbench.simulate.thread.descriptors import descriptor_offsets
from tileworkbench.simulate.thread.fragments import fragments, wgmma_a, wgmma_accumulator

from .kernels import addr


def same(operand, fragment, transposed=False):
    """The machine's flat element numbers are the fragment's coordinates."""
    coords = fragment.table().transpose(1, 0, 2)  # (registers, threads, 2)
    row, column = (coords[..., 1], coords[..., 0]) if transposed else (coords[..., 0], coords[..., 1])
    return np.array_equal(operand.flat, row * operand.columns + column)


@pytest.mark.parametrize("atom", [*mma_atoms(), *mfma_atoms()], ids=lambda a: a.instruction)
def test_atoms(atom):
    table = fragments(atom.instruction, DTYPES[atom.a_dtype].bytes)
    assert same(table.a, atom.a) and same(table.b, atom.b, transposed=True) and same(table.c, atom.c)


@pytest.mark.parametrize("n", [8, 24, 64, 176, 256])
def test_wgmma_accumulators(n):
    assert same(wgmma_accumulator(n), wgmma_accumulator_fragment(n))


@pytest.mark.parametrize("dtype,k", [("float16", 16), ("float8_e4m3fn", 32), ("tfloat32", 8)])
def test_wgmma_a(dtype, k):
    assert same(wgmma_a(k, DTYPES[dtype].bytes), wgmma_a_fragment(dtype))


@pytest.mark.parametrize("span", [32, 64, 128])
@pytest.mark.parametrize("mn_major", [False, True])
@pytest.mark.parametrize("start", [0, 32])
def test_descriptors(span, mn_major, start):
    stride, leading = 8 * span, 8 * span * 8
    buffer = Buffer("t", (1 << 14,), DTYPES["float16"], space="shared")
    d = Desc(addr(buffer), span, leading, stride, "mn" if mn_major else "k")
    mine = swizzle(4096 + start + descriptor_offsets(d, 64, 16, 2), span)
    theirs = operand_offsets(Descriptor(start, leading, stride, span, mn_major), 64, 16, 2, 4096)
    assert np.array_equal(mine, theirs)


def test_unswizzled_descriptors_are_core_matrices():
    """PTX: 8 rows of 16 bytes, packed; the next along K lies `leading` bytes on, the next 8 rows `stride` bytes."""
    buffer = Buffer("t", (1 << 14,), DTYPES["float16"], space="shared")
    got = descriptor_offsets(Desc(addr(buffer), 0, 128, 256), 64, 16, 2)
    for row in range(0, 64, 5):
        for k in range(16):
            assert got[row, k] == row // 8 * 256 + row % 8 * 16 + k // 8 * 128 + k % 8 * 2
    got = descriptor_offsets(Desc(addr(buffer), 0, 128, 256, "mn"), 64, 16, 2)
    for row in range(0, 64, 5):
        for k in range(16):
            assert got[row, k] == row // 8 * 256 + row % 8 * 2 + k % 8 * 16 + k // 8 * 128


@pytest.mark.parametrize("span", [0, 32, 64, 128])
def test_boxes(span):
    rows, columns = 24, (span or 64) // 2
    linear = np.arange(rows * columns) * 2
    assert np.array_equal(swizzle(linear, span), box_offsets((rows, columns), 2, span).ravel())
