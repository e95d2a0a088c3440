"""Views: the element at a row-major place of the view is the one at that place of the viewed tile."""

from __future__ import annotations

import numpy as np
import pytest

from tileworkbench.layout import (
    Fragment,
    SharedLayout,
    loop_layout,
    reshape_fragment,
    reshape_shared,
    wgmma_accumulator,
)


@pytest.mark.parametrize("shape", [(64, 4, 16), (32, 128), (4096,), (2, 32, 64), (64, 64)])
def test_fragment_views_hold_the_same_elements(shape):
    base = wgmma_accumulator((64, 64), 1)
    view = reshape_fragment(base, shape)
    assert isinstance(view, Fragment) and view.registers == base.registers
    old, new = (np.moveaxis(f.table(), -1, 0) for f in (base, view))
    np.testing.assert_array_equal(np.ravel_multi_index(tuple(new), shape), np.ravel_multi_index(tuple(old), (64, 64)))


def test_a_mode_across_the_new_dimension_becomes_a_table():
    base = loop_layout((6, 8), 16, 1)
    view = reshape_fragment(base, (4, 12))
    for i in range(48):
        assert view.owner(i // 12, i % 12) == base.owner(i // 8, i % 8)


@pytest.mark.parametrize(("shape", "itemsize"), [((128, 32), 2), ((32, 64), 4), ((64, 128), 1)])
def test_shared_views_lie_in_the_same_bytes(shape, itemsize):
    base = SharedLayout.swizzled((64, 64), 2, 128)
    view = reshape_shared(base, 2, shape, itemsize)
    tile = np.arange(64 * 64, dtype=np.uint16)
    memory = np.zeros(base.size, np.uint16)
    memory[base.table().ravel()] = tile
    seen = memory.view(f"u{itemsize}")[view.table().ravel()]
    np.testing.assert_array_equal(seen, tile.view(f"u{itemsize}"))
