"""Shared layouts against the swizzle rule spelled out in bytes, over every element."""

import numpy as np
import pytest

from tileworkbench.errors import LayoutError
from tileworkbench.layout import SharedLayout


def tma_byte(row, byte_in_row, span):
    """Where TMA puts a byte of a box whose rows are `span` bytes: address bits 4.. are XORed with bits 7.."""
    address = row * span + byte_in_row
    mask = {32: 1, 64: 3, 128: 7}[span]
    return address ^ (((address >> 7) & mask) << 4)


@pytest.mark.parametrize("span", [32, 64, 128])
@pytest.mark.parametrize("itemsize", [1, 2, 4])
@pytest.mark.parametrize("shape", [(64, 128), (16, 256), (12, 128)])
def test_swizzled_is_what_tma_writes_panel_by_panel(shape, itemsize, span):
    layout = SharedLayout.swizzled(shape, itemsize, span)
    rows, columns = shape
    panel_bytes = -(-rows // 8) * 8 * span
    table = layout.table()
    for row in range(rows):
        for column in range(columns):
            panel, inside = divmod(column * itemsize, span)
            assert table[row, column] * itemsize == panel * panel_bytes + tma_byte(row, inside, span)
    assert layout.alignment == 8 * span
    assert layout.size * itemsize == columns * itemsize // span * panel_bytes
    assert layout.bijective


@pytest.mark.parametrize(
    "layout",
    [
        SharedLayout.row_major((3, 4, 5)),
        SharedLayout.padded((8, 10), 3),
        SharedLayout.swizzled((2, 16, 128), 2, 64),
        SharedLayout.from_function((8, 16), lambda i, j: (j // 4, i, j % 4)),
    ],
)
def test_int_array_and_table_agree_and_stay_inside(layout):
    table = layout.table()
    for coords in np.ndindex(*layout.shape):
        assert layout.offset(*coords) == table[coords]
    assert table.min() >= 0
    assert table.max() < layout.size
    assert layout.bijective
    assert table.dtype == np.int32
    assert not table.flags.writeable


def test_row_major_and_padded_offsets():
    assert np.array_equal(SharedLayout.row_major((3, 5)).table(), np.arange(15).reshape(3, 5))
    padded = SharedLayout.padded((2, 3, 5), 2)
    assert padded.offset(1, 2, 4) == (1 * 3 + 2) * 7 + 4
    assert padded.size == 42


def test_leading_dimensions_are_slices():
    layout = SharedLayout.swizzled((3, 16, 128), 2, 128)
    one = SharedLayout.swizzled((16, 128), 2, 128)
    for stage in range(3):
        assert np.array_equal(layout.table()[stage], stage * one.size + one.table())


def test_function_form_with_several_physical_indices_is_row_major_over_them():
    layout = SharedLayout.from_function((4, 8), lambda i, j: (j, i + 1))
    assert layout.offset(2, 7) == 7 * 5 + 3
    assert layout.size == 8 * 5


def test_function_that_branches_on_its_arguments():
    layout = SharedLayout.from_function((4, 8), lambda i, j: i * 8 + (j if i < 2 else 7 - j))
    assert layout.table()[1].tolist() == list(range(8, 16))
    assert layout.table()[3].tolist() == list(range(31, 23, -1))


def test_equality_is_by_table():
    plain = SharedLayout.row_major((4, 8))
    assert plain == SharedLayout.from_function((4, 8), lambda i, j: i * 8 + j)
    assert hash(plain) == hash(SharedLayout.from_function((4, 8), lambda i, j: i * 8 + j))
    assert plain != SharedLayout.padded((4, 8), 1)
    assert plain != SharedLayout.row_major((8, 4))
    assert SharedLayout.swizzled((8, 64), 2, 128) != SharedLayout.row_major((8, 64))


def test_inverse_table_finds_every_element_and_marks_padding():
    for layout in (SharedLayout.padded((6, 10), 3), SharedLayout.swizzled((2, 12, 64), 2, 64)):
        inverse = layout.inverse_table()
        held = inverse[:, 0] >= 0
        assert held.sum() == np.prod(layout.shape)
        for offset in np.flatnonzero(held):
            assert layout.offset(*inverse[offset].tolist()) == offset


def test_function_that_is_not_injective_says_so():
    assert not SharedLayout.from_function((4, 8), lambda i, j: i + j).bijective
    assert SharedLayout.from_function((4, 8), lambda i, j: i * 8 + j % 6).clash() == ((0, 0), (0, 6), 0)
    assert SharedLayout.from_function((4, 8), lambda i, j: i * 9 + j).clash() is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: SharedLayout.swizzled((64,), 2, 128),
        lambda: SharedLayout.swizzled((64, 48), 2, 128),
        lambda: SharedLayout.swizzled((64, 64), 2, 48),
        lambda: SharedLayout.swizzled((64, 64), 3, 64),
        lambda: SharedLayout.row_major(()),
        lambda: SharedLayout.row_major((4, 0)),
        lambda: SharedLayout.padded((4, 4), -1),
        lambda: SharedLayout.from_function((4,), lambda i: i - 1).size,
    ],
)
def test_impossible_layouts_are_located_errors(make):
    with pytest.raises(LayoutError):
        make()


def test_descriptions_name_the_form():
    assert SharedLayout.row_major((4, 4)).describe() == "row-major"
    assert SharedLayout.padded((4, 4), 2).describe() == "row-major, rows padded by 2"
    assert SharedLayout.swizzled((8, 128), 2, 128).describe() == "128-byte swizzle, 2 panels of 64 columns"
