"""wgmma descriptors and TMA boxes: what they read and write equals the shared layout's table, for every element."""

import numpy as np
import pytest

from tileworkbench.errors import LayoutError
from tileworkbench.layout import SharedLayout, box_offsets, operand_offsets, swizzle_span, tma_boxes, wgmma_descriptor


def hardware_reads(bits, mn_major, mn, k, itemsize):
    """Bytes one instruction reads, from the 64-bit descriptor alone, element by element."""
    start = (bits & 0x3FFF) << 4
    leading = (bits >> 16 & 0x3FFF) << 4
    stride = (bits >> 32 & 0x3FFF) << 4
    span, mask = {1: (128, 7), 2: (64, 3), 3: (32, 1)}[bits >> 62]
    assert bits >> 49 & 7 == 0
    row, column = np.indices((mn, k))
    if mn_major:
        place = row * itemsize // span * leading + row * itemsize % span + column // 8 * stride + column % 8 * span
    else:
        place = row // 8 * stride + row % 8 * span + column * itemsize
    address = start + place
    return address ^ ((address >> 7 & mask) << 4)


@pytest.mark.parametrize("itemsize", [1, 2, 4])
@pytest.mark.parametrize("span", [32, 64, 128])
@pytest.mark.parametrize("version", [0, 3])
def test_k_major_operands_for_every_step_and_sub_tile(span, itemsize, version):
    rows, columns = 192, 256 // itemsize
    tile = SharedLayout.swizzled((rows, columns), itemsize, span)
    address = 4096 + version * tile.size * itemsize
    k = 32 // itemsize
    for mn, extent in [(0, 64), (64, 64), (128, 64), (0, 192), (96, 96), (8, 24)]:
        for step in range(0, columns, k):
            descriptor = wgmma_descriptor(tile, itemsize, False, mn, step, extent)
            expected = address + tile.table()[mn : mn + extent, step : step + k].astype(np.int64) * itemsize
            bits = descriptor.encode(address)
            assert np.array_equal(hardware_reads(bits, False, extent, k, itemsize), expected)
            assert np.array_equal(operand_offsets(descriptor, extent, k, itemsize, address), expected)


@pytest.mark.parametrize("span", [32, 64, 128])
def test_mn_major_operands_for_every_step_and_sub_tile(span):
    rows, columns = 64, 256
    tile = SharedLayout.swizzled((rows, columns), 2, span)
    per_panel = span // 2
    for mn in range(0, columns, per_panel):
        for extent in (8, 64, 96, 128, 256):
            if mn + extent > columns:
                continue
            for step in range(0, rows, 16):
                descriptor = wgmma_descriptor(tile, 2, True, mn, step, extent)
                expected = 1024 + tile.table()[step : step + 16, mn : mn + extent].T.astype(np.int64) * 2
                bits = descriptor.encode(1024)
                assert np.array_equal(hardware_reads(bits, True, extent, 16, 2), expected)
                assert np.array_equal(operand_offsets(descriptor, extent, 16, 2, 1024), expected)


def test_slices_of_a_tile_with_stages():
    tile = SharedLayout.swizzled((3, 64, 64), 2, 128)
    for lead in range(3):
        descriptor = wgmma_descriptor(tile, 2, False, 0, 16, 64, lead)
        assert np.array_equal(operand_offsets(descriptor, 64, 16, 2), tile.table()[lead, :, 16:32] * 2)


def test_a_user_layout_that_equals_the_swizzle_is_recognised():
    mine = SharedLayout.from_function((64, 64), lambda i, j: i * 64 + ((j // 8) ^ (i % 8)) * 8 + j % 8)
    assert swizzle_span(mine, 2) == 128
    assert wgmma_descriptor(mine, 2, False, 0, 0, 64).span == 128
    assert swizzle_span(SharedLayout.padded((64, 64), 8), 2) is None
    assert swizzle_span(SharedLayout.row_major((64, 64)), 2) == 0


@pytest.mark.parametrize(
    "layout, itemsize, mn_major, mn, k, extent",
    [
        (SharedLayout.row_major((64, 64)), 2, False, 0, 0, 64),
        (SharedLayout.padded((64, 64), 8), 2, False, 0, 0, 64),
        (SharedLayout.swizzled((64, 128), 1, 128), 1, True, 0, 0, 64),
        (SharedLayout.swizzled((64, 64), 2, 128), 2, False, 4, 0, 32),
        (SharedLayout.swizzled((64, 64), 2, 128), 2, False, 0, 8, 64),
        (SharedLayout.swizzled((64, 64), 2, 128), 2, False, 32, 0, 64),
        (SharedLayout.swizzled((64, 128), 2, 128), 2, True, 32, 0, 64),
    ],
)
def test_operands_no_descriptor_can_read(layout, itemsize, mn_major, mn, k, extent):
    with pytest.raises(LayoutError):
        wgmma_descriptor(layout, itemsize, mn_major, mn, k, extent)


def test_descriptor_fields():
    tile = SharedLayout.swizzled((128, 128), 2, 128)
    descriptor = wgmma_descriptor(tile, 2, False, 64, 80, 64)
    assert (descriptor.start, descriptor.stride, descriptor.leading) == (16384 + 64 * 128 + 32, 1024, 16384)
    assert descriptor.encode(0x4400) & 0x3FFF == (0x4400 + descriptor.start) >> 4
    assert descriptor.encode(0) >> 62 == 1


@pytest.mark.parametrize("span", [0, 32, 64, 128])
def test_box_pattern_by_bytes(span):
    box, itemsize = (24, (span or 128) // 2), 2
    offsets = box_offsets(box, itemsize, span)
    row, column = np.indices(box)
    address = row * (span or 128) + column * itemsize
    mask = {0: 0, 32: 1, 64: 3, 128: 7}[span]
    assert np.array_equal(offsets, address ^ ((address >> 7 & mask) << 4))


@pytest.mark.parametrize(
    "layout, itemsize, span, box, count",
    [
        (SharedLayout.swizzled((128, 64), 2, 128), 2, 128, (128, 64), 1),
        (SharedLayout.swizzled((128, 256), 2, 128), 2, 128, (128, 64), 4),
        (SharedLayout.swizzled((512, 32), 2, 64), 2, 64, (256, 32), 2),
        (SharedLayout.swizzled((4, 64, 64), 2, 128), 2, 128, (4, 64, 64), 1),
        (SharedLayout.swizzled((4, 12, 64), 2, 128), 2, 128, (1, 12, 64), 4),
        (SharedLayout.swizzled((2, 64, 128), 2, 128), 2, 128, (1, 64, 64), 4),
        (SharedLayout.row_major((64, 40)), 2, 0, (64, 40), 1),
        (SharedLayout.row_major((256,)), 4, 0, (256,), 1),
        (SharedLayout.row_major((2, 3, 64)), 4, 0, (2, 3, 64), 1),
    ],
)
def test_boxes_write_the_whole_layout(layout, itemsize, span, box, count):
    plan = tma_boxes(layout, itemsize)
    assert (plan.span, plan.box, len(plan.boxes)) == (span, box, count)
    written = np.full(layout.shape, -1)
    for part in plan.boxes:
        where = tuple(slice(o, o + b) for o, b in zip(part.origin, part.box, strict=True))
        assert (written[where] == -1).all()
        written[where] = part.start + box_offsets(part.box, itemsize, span)
        assert part.start % (128 if span == 0 else layout.alignment) == 0
    assert np.array_equal(written, layout.table() * itemsize)


@pytest.mark.parametrize(
    "layout, itemsize, word",
    [
        (SharedLayout.padded((64, 64), 8), 2, "padded"),
        (SharedLayout.row_major((4, 512)), 2, "256"),
        (SharedLayout.row_major((4, 4)), 2, "16"),
        (SharedLayout.swizzled((300, 64), 2, 128), 2, "contiguous"),
        (SharedLayout.row_major((2, 2, 2, 2, 2, 16)), 2, "rank"),
    ],
)
def test_layouts_that_tma_cannot_write_say_why(layout, itemsize, word):
    assert word in tma_boxes(layout, itemsize)
