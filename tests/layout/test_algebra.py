"""The shape:stride algebra against brute force over every index."""

import itertools

import numpy as np
import pytest

from tileworkbench.errors import LayoutError
from tileworkbench.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    coalesce,
    complement,
    composition,
    concat,
    left_inverse,
    logical_divide,
    logical_product,
    right_inverse,
)

LAYOUTS = [
    Layout(1, 0),
    Layout(8),
    Layout(8, 3),
    Layout((4, 2)),
    Layout((4, 2), (2, 1)),
    Layout((4, (2, 3)), (3, (12, 1))),
    Layout(((2, 2), (2, 2)), ((1, 4), (2, 8))),
    Layout(((2, 4), 3), ((8, 1), 16)),
    Layout((1, 6, 1, 2), (9, 2, 7, 12)),
    Layout((2, 3, 4), (12, 4, 1)),
    Layout((4, 4), (0, 1)),
]


def offsets(layout):
    return [layout(i) for i in range(layout.size)]


def coordinates(shape):
    """All coordinates in colexicographic order, nested as the shape."""
    if isinstance(shape, int):
        return list(range(shape))
    modes = [coordinates(mode) for mode in shape]
    return [tuple(reversed(point)) for point in itertools.product(*reversed(modes))]


def dot(coord, stride):
    return coord * stride if isinstance(stride, int) else sum(dot(c, d) for c, d in zip(coord, stride, strict=True))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_linear_index_and_nested_coordinate_agree(layout):
    points = coordinates(layout.shape)
    assert len(points) == layout.size
    expected = [dot(point, layout.stride) for point in points]
    assert offsets(layout) == expected
    assert layout(np.arange(layout.size)).tolist() == expected
    if layout.rank > 1:
        assert [layout(*point) for point in points] == expected
    assert layout.cosize == max(expected) + 1


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_coalesce_keeps_the_function_with_fewest_modes(layout):
    short = coalesce(layout)
    assert offsets(short) == offsets(layout)
    leaves = short.leaves()
    assert all(s * d != e for (s, d), (_, e) in itertools.pairwise(leaves))


def is_layout(line):
    """Whether some flat layout has these offsets: exhaustive search over first extents."""
    if len(line) == 1:
        return True
    for extent in [e for e in range(2, len(line) + 1) if len(line) % e == 0]:
        blocks = [line[i - i % extent] + i % extent * line[1] for i in range(len(line))]
        if blocks == line and is_layout(line[::extent]):
            return line[1] >= 0
    return False


@pytest.mark.parametrize("outer", LAYOUTS, ids=str)
@pytest.mark.parametrize("inner", LAYOUTS, ids=str)
def test_composition_by_brute_force(outer, inner):
    if inner.cosize > outer.size:
        return
    try:
        result = composition(outer, inner)
    except LayoutError:
        # A refusal must be honest: some mode of the result is no layout, or the modes do not simply add up.
        lines = [[outer(i * step) for i in range(extent)] for extent, step in inner.leaves()]
        sums = [sum(reversed(picked)) for picked in itertools.product(*reversed(lines))]
        assert not all(is_layout(line) for line in lines) or sums != [outer(inner(i)) for i in range(inner.size)]
        return
    assert result.size == inner.size
    assert offsets(result) == [outer(inner(i)) for i in range(inner.size)]


@pytest.mark.parametrize("layout", LAYOUTS[:-1], ids=str)
def test_complement_covers_every_offset_once(layout):
    for target in (layout.cosize, 2 * layout.cosize, 96):
        try:
            rest = complement(layout, target)
        except LayoutError:
            assert str(layout) in {"(4,(2,3)):(3,(12,1))"}
            continue
        both = sorted(offsets(concat(layout, rest)))
        assert len(set(both)) == len(both)
        assert set(range(target)) <= set(both)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_right_inverse(layout):
    inverse = right_inverse(layout)
    assert [layout(inverse(i)) for i in range(inverse.size)] == list(range(inverse.size))
    if sorted(offsets(layout)) == list(range(layout.size)):
        assert inverse.size == layout.size


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_left_inverse(layout):
    try:
        inverse = left_inverse(layout)
    except LayoutError:
        assert str(layout) in {"(4,4):(0,1)", "(4,(2,3)):(3,(12,1))"}
        return
    assert [inverse(layout(i)) for i in range(layout.size)] == list(range(layout.size))


def test_logical_divide_splits_into_tile_and_rest():
    matrix = Layout((8, 12), (12, 1))
    divided = logical_divide(matrix, (4, Layout(3)))
    for (i, ti), (j, tj) in itertools.product(
        itertools.product(range(4), range(2)), itertools.product(range(3), range(4))
    ):
        assert divided((i, ti), (j, tj)) == matrix(i + 4 * ti, j + 3 * tj)
    strided = logical_divide(Layout(24, 5), Layout(4, 6))
    for i, t in itertools.product(range(4), range(6)):
        assert strided(i, t) == 5 * (i * 6 + t)


def test_logical_product_repeats_without_overlap():
    block = Layout((2, 2), (4, 1))
    repeated = logical_product(block, Layout(6))
    assert repeated.size == 24
    assert len(set(offsets(repeated))) == 24
    first = [repeated[0](i) for i in range(4)]
    assert first == offsets(block)
    by_mode = logical_product(Layout((2, 5), (5, 1)), (3,))
    assert by_mode.rank == 2


def test_bad_layouts_and_coordinates_are_errors():
    for make in (lambda: Layout((2, 3), (1,)), lambda: Layout((2, 3), 1), lambda: Layout(0), lambda: Layout(4, -1)):
        with pytest.raises(LayoutError):
            make()
    with pytest.raises(LayoutError):
        Layout((2, 3))(1, 2, 3)
    with pytest.raises(LayoutError):
        Layout((2, 3))((1, 1), 2)
    with pytest.raises(LayoutError):
        complement(Layout((2, 2), (1, 3)))


@pytest.mark.parametrize(
    "swizzle", [Swizzle(3, 4, 3), Swizzle(2, 4, 3), Swizzle(1, 4, 3), Swizzle(2, 0, 3), Swizzle(2, 1, -2)]
)
def test_swizzle_moves_single_bits_and_is_its_own_inverse(swizzle):
    everything = np.arange(4096)
    moved = swizzle(everything)
    assert sorted(moved.tolist()) == everything.tolist()
    assert np.array_equal(swizzle(moved), everything)
    for value in range(4096):
        expected = value
        for bit in range(swizzle.bits):
            low = swizzle.base + bit
            source, sink = (low + swizzle.shift, low) if swizzle.shift > 0 else (low, low - swizzle.shift)
            expected ^= ((value >> source) & 1) << sink
        assert swizzle(value) == expected == moved[value]


def test_swizzle_recast_counts_in_other_units():
    byte, half = Swizzle(3, 4, 3), Swizzle(3, 4, 3).recast(8, 16)
    assert all(half(i) * 2 == byte(i * 2) for i in range(2048))
    with pytest.raises(LayoutError):
        Swizzle(3, 0, 3).recast(8, 16)


def test_composed_layout():
    composed = ComposedLayout(Swizzle(2, 0, 3), 16, Layout((8, 4), (4, 1)))
    for i, j in itertools.product(range(8), range(4)):
        linear = 16 + 4 * i + j
        assert composed(i, j) == linear ^ (linear >> 3 & 3)
    assert composed.size == 32
