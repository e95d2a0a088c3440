"""TileLang's layouts and fragments, over every index."""

from __future__ import annotations

import numpy as np
import pytest

from tileworkbench.compat import layouts, tirx
from tileworkbench.compat.intrinsics import get_mma_micro_size, get_swizzle_layout
from tileworkbench.compat.plotting import plot_layout
from tileworkbench.errors import LayoutError, OptionError, TargetError, TileError
from tileworkbench.ir.dtype import dtype
from tileworkbench.ir.expr import Buffer


def grid(*shape):
    return np.ndindex(*shape)


def test_a_function_of_several_physical_indices():
    layout = layouts.Layout([8, 16], lambda i, j: [i // 2, j, i % 2])
    assert layout.get_input_shape() == [8, 16] and layout.get_output_shape() == [4, 16, 2]
    assert all(layout(i, j) == [i // 2, j, i % 2] for i, j in grid(8, 16))
    assert all(layout.offset(i, j) == (i // 2) * 32 + j * 2 + i % 2 for i, j in grid(8, 16))


def test_repeat_expand_reshape_and_inverse():
    layout = layouts.Layout([4, 8], lambda i, j: [j, i])
    repeated, expanded, flat = layout.repeat(1, 3), layout.expand([2]), layout.reshape([32])
    assert all(repeated(i, j) == [j // 8, j % 8, i] for i, j in grid(4, 24))
    assert all(expanded(n, i, j) == [n, j, i] for n, i, j in grid(2, 4, 8))
    assert all(flat(n) == [n % 8, n // 8] for n in range(32))
    inverse = layout.inverse()
    assert all([int(x) for x in inverse(*layout(i, j))] == [i, j] for i, j in grid(4, 8))
    assert layout.is_equal(layouts.Layout([4, 8], lambda i, j: j * 4 + i)) and layout.repeat(0, 1) is layout
    with pytest.raises(LayoutError, match="as many elements"):
        layout.reshape([16])
    with pytest.raises(LayoutError, match="one place"):
        layouts.Layout(
            [4, 2], lambda i, j: [i, 1 - j * j * 0 - 0 * i] if False else [i // 2, j * 0 + i % 2 * 3]
        ).inverse()


@pytest.mark.parametrize(("make", "span"), [("full", 128), ("half", 64), ("quarter", 32)])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_swizzles_exchange_16_byte_chunks(make, span, bits):
    columns, chunk = span * 8 // bits, 128 // bits
    layout = getattr(layouts, f"make_{make}_bank_swizzled_layout")(16, columns, bits)
    rows_a_phase, phases = 128 // span, span // 16
    for row, column in grid(16, columns):
        moved = (column // chunk ^ (row // rows_a_phase) % phases) * chunk + column % chunk
        assert layout.offset(row, column) == row * columns + moved
        assert get_swizzle_layout(row, column, columns, {8: "int8", 16: "float16", 32: "float32"}[bits]) == (
            0,
            row,
            moved,
        )


def tile(shape, name="float16"):
    return Buffer("tile", shape, dtype(name), "shared")


def test_the_widest_swizzle_that_the_rows_hold():
    found = [layouts.make_swizzled_layout(tile((64, n))) for n in (64, 32, 16, 48, 24)]
    assert [getattr(x, "span", 0) for x in found] == [128, 64, 32, 32, 0]
    assert found[4].strides == (32, 1)  # padded by 16 bytes
    assert layouts.make_swizzled_layout(tile((64, 24)), allow_pad=False).strides == (24, 1)
    assert layouts.make_linear_layout(tile((2, 3, 4))).table().ravel().tolist() == list(range(24))
    with pytest.raises(LayoutError, match="made for buffers"):
        layouts.make_swizzled_layout(3)


def test_fragments_in_both_forms_of_their_functions():
    one = layouts.Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))
    two = layouts.Fragment([8, 8], forward_thread_fn=lambda i, j: i * 4 + j // 2, forward_index_fn=lambda i, j: [j % 2])
    assert one == two == layouts.make_gemm_fragment_8x8() and hash(one) == hash(two)
    assert one != layouts.make_gemm_fragment_8x8_transposed() and isinstance(one, layouts.Fragment)
    assert one.get_thread_size() == 32 and one.get_output_shape() == [2]
    assert all(one.map_forward_thread([i, j]) == [i * 4 + j // 2] for i, j in grid(8, 8))
    with pytest.raises(TileError, match="without a function"):
        layouts.Fragment((8, 8))


def test_fragments_repeat_and_replicate():
    base = layouts.make_gemm_fragment_8x8()
    wide, tall, copies = base.repeat([1, 2]), base.repeat([2, 1], repeat_on_thread=True), base.replicate(2)
    for i, j in grid(8, 16):
        thread, register = wide.owner(i, j)
        assert (thread, register) == (i * 4 + j % 8 // 2, j // 8 * 2 + j % 2)
    for i, j in grid(16, 8):
        assert tall.owner(i, j)[0] == i // 8 * 32 + i % 8 * 4 + j // 2
    assert copies.get_thread_size() == 64 and copies.replica_threads(3, 5) == [3 * 4 + 2, 3 * 4 + 2 + 32]
    order = base.repeat([2, 2], lower_dim_first=False)
    assert order.owner(8, 0)[1] == 2 and order.owner(0, 8)[1] == 4
    assert base.repeat([2, 2]).owner(0, 8)[1] == 2


def test_a_replicated_fragment_given_by_a_function_of_the_replica():
    found = layouts.Fragment((4,), lambda i, rep: (i + 4 * rep, 0), replicate=2)
    assert found.threads == 8 and found.replication == 2
    whole = layouts.make_fully_replicated_layout_fragment(tile((2, 3)), 32)
    assert whole.threads == 32 and whole.registers == 6 and whole.replication == 32


def test_pictures(tmp_path):
    svg, png = plot_layout(layouts.make_gemm_fragment_8x8(), tmp_path, formats="svg,png")
    text = svg.read_text()
    assert text.count("<rect") == 64 and ">T31<" in text and png.read_bytes().startswith(b"\x89PNG")
    (swizzled,) = plot_layout(layouts.make_half_bank_swizzled_layout(8, 32, 16), tmp_path, view="output", name="s")
    assert swizzled.read_text().count("<rect") == 256
    with pytest.raises(OptionError, match="holds every element once"):
        plot_layout(layouts.make_gemm_fragment_8x8(), tmp_path, grid_shape=(3, 3))


def test_micro_sizes():
    assert [get_mma_micro_size(t) for t in ("float16", "int8", "float32")] == [(16, 16, 16), (16, 16, 32), (16, 16, 8)]


def test_registers_follow_from_the_threads():
    whole = layouts.Fragment([32, 4], forward_thread_fn=lambda i, j, rep: i * 4 + rep, replicate=4)
    assert whole.get_thread_size() == 128 and whole.get_output_shape() == [4]
    assert all(whole.map_forward_index([i, j]) == [j] for i, j in grid(32, 4))
    pairs = layouts.Fragment([4, 16], forward_thread_fn=lambda i, j: i * 8 + j // 2)
    assert all(pairs.owner(i, j) == (i * 8 + j // 2, j % 2) for i, j in grid(4, 16))
    mixed = layouts.Fragment([32, 4], forward_thread_fn=lambda i, j: j * 4 + i)
    held = {}
    for i, j in grid(32, 4):  # row-major among the elements of a thread
        held.setdefault(j * 4 + i, []).append((i, j))
    assert all(mixed.owner(i, j) == (t, n) for t, own in held.items() for n, (i, j) in enumerate(own))
    assert not mixed.is_equal(layouts.Fragment([32, 4], forward_thread_fn=lambda i, j: i * 4 + j))


def test_constant_expressions_are_numbers():
    zero = layouts.Layout([4, 2], lambda i, j: tirx.const(0, "int32"))
    assert zero.is_equal(layouts.Layout([4, 2], lambda i, j: 0 * i)) and zero.get_output_shape() == [1]
    assert not zero.is_equal(layouts.Layout([4, 2], lambda i, j: i))
    one = layouts.Fragment([4], lambda i: (i, tirx.const(0, "int32")))
    assert one.is_equal(layouts.Fragment([4], lambda i: (i, 0)))


@pytest.mark.parametrize(("dim", "factor"), [(0, 0), (0, -1), (2, 2), (-3, 2)])
def test_a_wrong_repeat(dim, factor):
    with pytest.raises(LayoutError, match="repeat"):
        layouts.Layout([8, 4], lambda i, j: i * 4 + j).repeat(dim, factor)


def test_layouts_of_declared_buffers():
    tile, stack = (tirx.decl_buffer(shape, "float16", scope="shared.dyn") for shape in ((8, 64), (3, 8, 64)))
    made = layouts.make_full_bank_swizzled_layout(tile)
    assert layouts.make_full_bank_swizzled_layout(stack).is_equal(made.expand([3]))
    assert tirx.decl_buffer(16, name="w", strides=[1]).dtype == dtype("float32")
    with pytest.raises(TargetError, match=r"decl_buffer in 'shared\.tmem'"):
        tirx.decl_buffer((8, 8), scope="shared.tmem")
