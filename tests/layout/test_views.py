"""Views: the element at a row-major place of the view is the one at that place of the viewed tile."""

from __future__ import annotations

import numpy as np
import pytest

from tileworkbench.layout import (
    Fragment,
    SharedLayout,
    loop_layout,
    padded_loop,
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


@pytest.mark.parametrize(("old", "shape", "threads", "vector"), [
    ((2, 384), (2, 3, 128), 128, 2), ((12, 20), (240,), 32, 4), ((6, 8), (4, 12), 16, 1), ((5, 6), (3, 10), 32, 1),
])  # fmt: skip
def test_views_across_dimensions_answer_in_closed_form(old, shape, threads, vector):
    for base in (loop_layout(old, threads, vector), padded_loop(old, threads, vector)):
        view = reshape_fragment(base, shape)
        for t in range(threads):
            for r in range(base.registers):
                digits = base.register_digits(r)
                if all(base.guards(t, digits)):
                    place = np.ravel_multi_index(tuple(int(c) for c in base.coordinate(t, digits)), old)
                    assert all(view.guards(t, view.register_digits(r)))
                    assert np.ravel_multi_index(tuple(int(c) for c in view.coordinate(t, digits)), shape) == place
                    assert base.owner(*np.unravel_index(place, old)) == view.owner(*np.unravel_index(place, shape))
        np.testing.assert_array_equal(view.valid(), base.valid())
        assert reshape_fragment(view, old) == base


def test_a_mode_across_the_new_dimension():
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
