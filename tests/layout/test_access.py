"""ldmatrix, bank conflicts, vector widths and conversions, by simulation of what the lanes do."""

import numpy as np
import pytest

from tileworkbench.errors import LayoutError
from tileworkbench.layout import (
    Fragment,
    FunctionFragment,
    SharedLayout,
    access_conflicts,
    accumulator,
    bank_conflicts,
    conversion,
    find_atoms,
    global_vector_width,
    keeps_rows,
    local_registers,
    loop_layout,
    matrix_fragment,
    matrix_move,
    mma_atoms,
    offset_threads,
    operand_a,
    operand_b,
    permute_dims,
    reduce_dim,
    reg_mode,
    replicate,
    replicated,
    shared_vector_width,
    thread_mode,
    wgmma_accumulator,
)

F16 = find_atoms("sm_80", "float16", "float16", "float32")[0]
TF32 = find_atoms("sm_80", "tfloat32", "tfloat32", "float32")[0]
FP8 = find_atoms("sm_89", "float8_e4m3fn", "float8_e4m3fn", "float32")[0]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
def test_what_a_lane_receives(count, trans):
    table = matrix_fragment(count, trans).table()
    for lane in range(32):
        for i in range(2 * count):
            across = (lane % 4) * 2 + i % 2
            expected = (i // 2, across, lane // 4) if trans else (i // 2, lane // 4, across)
            assert tuple(table[lane, i]) == expected


def ldmatrix(memory, addresses, count, trans, itemsize):
    """The instruction itself: `memory` holds element names by byte address; result (32 lanes, elements)."""
    per_row = 16 // itemsize
    packed = 4 // itemsize
    out = np.full((32, count * packed), -1)
    for matrix in range(count):
        rows = [[memory[addresses[8 * matrix + r] + c * itemsize] for c in range(per_row)] for r in range(8)]
        stored = np.array(rows).T if trans else np.array(rows)
        for lane in range(32):
            out[lane, matrix * packed : (matrix + 1) * packed] = stored[lane // 4, lane % 4 * packed :][:packed]
    return out


CASES = [
    (operand_a(F16, (64, 32), 2, 2), 1, 2, (4, False)),
    (permute_dims(operand_a(F16, (64, 32), 2, 2), (1, 0)), 1, 2, (4, True)),
    (operand_b(F16, (64, 32), 2, 2), 1, 2, (4, False)),
    (permute_dims(operand_b(F16, (64, 32), 1, 2), (1, 0)), 1, 2, (4, True)),
    (operand_b(F16, (8, 16), 1, 1), 1, 2, (2, False)),
    (operand_a(TF32, (32, 32), 2, 1), 1, 4, (4, False)),
    (operand_a(FP8, (32, 64), 2, 1), 1, 1, (4, False)),
    (operand_b(FP8, (32, 64), 2, 1), 1, 1, (4, False)),
    (accumulator(F16, (64, 64), 2, 2), 1, 2, (4, False)),
    (wgmma_accumulator((128, 64), 2), 1, 2, (4, False)),
]


@pytest.mark.parametrize("fragment, dim, itemsize, expected", CASES)
def test_ldmatrix_delivers_the_fragment(fragment, dim, itemsize, expected):
    move = matrix_move(fragment, dim, itemsize)
    assert (move.count, move.trans) == expected
    layout = SharedLayout.swizzled(fragment.shape, itemsize, 32)
    memory = {}
    for coords in np.ndindex(*fragment.shape):
        memory[int(layout.offset(*coords)) * itemsize] = int(np.ravel_multi_index(coords, fragment.shape))
    names = np.ravel_multi_index(tuple(np.moveaxis(fragment.table(), -1, 0)), fragment.shape)
    for warp in range(fragment.threads // 32):
        for instruction in range(move.instructions):
            lanes = warp * 32 + np.arange(32)
            starts = [layout.offset(*move.row_start(int(t), instruction)) * itemsize for t in lanes]
            got = ldmatrix(memory, starts, move.count, move.trans, itemsize)
            run = names[lanes, instruction * move.run : (instruction + 1) * move.run]
            assert np.array_equal(got, run)
            arrays = np.stack(np.broadcast_arrays(lanes, *move.row_start(lanes, instruction))[1:])
            assert [layout.offset(*c) * itemsize for c in arrays.T] == starts


@pytest.mark.parametrize(
    "fragment, dim, itemsize",
    [
        (operand_a(TF32, (32, 32), 2, 1), 0, 4),
        (permute_dims(operand_a(FP8, (32, 64), 2, 1), (1, 0)), 1, 1),
        (accumulator(F16, (64, 64), 2, 2), 1, 4),
        (loop_layout((64, 64), 128, 8), 1, 2),
        (loop_layout((33, 7), 128), 1, 2),
    ],
)
def test_fragments_that_ldmatrix_cannot_move(fragment, dim, itemsize):
    assert matrix_move(fragment, dim, itemsize) is None


def test_which_layouts_keep_rows_of_16_bytes():
    assert keeps_rows(SharedLayout.row_major((64, 64)), 1, 2)
    assert keeps_rows(SharedLayout.padded((64, 64), 8), 1, 2)
    assert not keeps_rows(SharedLayout.padded((64, 64), 4), 1, 2)
    assert not keeps_rows(SharedLayout.row_major((64, 64)), 0, 2)
    assert not keeps_rows(SharedLayout.row_major((64, 12)), 1, 2)
    assert all(keeps_rows(SharedLayout.swizzled((64, 128), 2, span), 1, 2) for span in (32, 64, 128))


def brute_ways(addresses, width):
    """Most distinct words in one bank among lanes that are served together."""
    total = 0
    group = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[width]
    for start in range(0, len(addresses), group):
        banks = {}
        for address in addresses[start : start + group]:
            for word in {(address + b) // 4 for b in range(width)}:
                banks.setdefault(word % 32, set()).add(word)
        total += max(len(words) for words in banks.values())
    return total


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_conflicts_by_brute_force(width):
    random = np.random.default_rng(width)
    for _ in range(50):
        addresses = (random.integers(0, 512, 32) * width).tolist()
        assert bank_conflicts(addresses, width).wavefronts == brute_ways(addresses, width)


def test_known_conflicts():
    rows = np.arange(32)
    assert bank_conflicts(rows * 4, 4).wavefronts == 1
    assert bank_conflicts(rows * 0, 4).wavefronts == 1
    assert bank_conflicts(rows * 128, 4).wavefronts == 32
    assert bank_conflicts(rows * 132, 4).wavefronts == 1
    assert bank_conflicts(rows * 8, 4).wavefronts == 2
    assert bank_conflicts(rows * 16, 16) == bank_conflicts(rows[::-1] * 16, 16)
    assert bank_conflicts(rows * 16, 16).wavefronts == bank_conflicts(rows * 16, 16).ideal == 4
    assert bank_conflicts(np.where(rows < 16, rows * 128, -1), 4).wavefronts == 16
    assert bank_conflicts(np.full(32, -1), 4).wavefronts == 0
    wave = np.arange(64)
    assert bank_conflicts(wave * 4, 4).wavefronts == bank_conflicts(wave * 4, 4).ideal == 2
    assert bank_conflicts(wave * 256, 4).wavefronts == 64


def test_ldmatrix_rows_conflict_8_ways_row_major_and_never_swizzled():
    fragment = operand_a(F16, (128, 64), 4, 1)
    move = matrix_move(fragment, 1, 2)
    lanes = np.arange(32)
    for layout, per_matrix in [
        (SharedLayout.row_major((128, 64)), 8),
        (SharedLayout.padded((128, 64), 8), 1),
        (SharedLayout.swizzled((128, 64), 2, 128), 1),
        (SharedLayout.swizzled((128, 64), 2, 64), 1),
        (SharedLayout.swizzled((128, 64), 2, 32), 1),
    ]:
        for instruction in range(move.instructions):
            offsets = layout.offset(*move.row_start(lanes, instruction)) * 2
            report = bank_conflicts(offsets, 16)
            assert (report.wavefronts, report.ideal, report.ways) == (4 * per_matrix, 4, per_matrix)


def test_column_read_of_a_row_major_tile():
    column = Fragment((32, 64), (thread_mode(32, 1, 0, 1), reg_mode(64, 1, 1, 1)))
    assert access_conflicts(column, SharedLayout.row_major((32, 64)), 2).ways == 32
    assert access_conflicts(column, SharedLayout.padded((32, 64), 2), 2).ways == 1
    eight = bank_conflicts(np.arange(8) * 128, 16)
    assert (eight.wavefronts, eight.ideal) == (8, 1)


@pytest.mark.parametrize(
    "fragment, layout, itemsize, expected",
    [
        (loop_layout((128, 64), 128, 8), SharedLayout.row_major((128, 64)), 2, 8),
        (loop_layout((128, 64), 128, 8), SharedLayout.swizzled((128, 64), 2, 128), 2, 8),
        (loop_layout((128, 64), 128, 4), SharedLayout.swizzled((128, 64), 2, 128), 2, 4),
        (loop_layout((128, 64), 128, 8), SharedLayout.padded((128, 64), 4), 2, 4),
        (loop_layout((128, 64), 128, 8), SharedLayout.padded((128, 64), 1), 2, 1),
        (loop_layout((128, 64), 128, 8), SharedLayout.row_major((128, 64)), 4, 4),
        (loop_layout((7, 36), 128, 4), SharedLayout.row_major((7, 36)), 4, 4),
        (loop_layout((7, 33), 128, 4), SharedLayout.row_major((7, 33)), 4, 1),
        (accumulator(F16, (64, 64), 2, 2), SharedLayout.row_major((64, 64)), 4, 2),
        (permute_dims(loop_layout((64, 128), 128, 8), (1, 0)), SharedLayout.row_major((128, 64)), 2, 1),
    ],
)
def test_shared_vector_width(fragment, layout, itemsize, expected):
    assert shared_vector_width(fragment, layout, itemsize) == expected


def test_vectors_never_straddle_the_edge():
    guarded = Fragment((4, 6), (thread_mode(4, 1, 0, 1), reg_mode(8, 1, 1, 1)))
    assert shared_vector_width(guarded, SharedLayout.row_major((4, 6)), 2) == 2


@pytest.mark.parametrize(
    "divisors, alignment, expected", [((8, 1), 8, 8), ((4, 1), 8, 4), ((0, 1), 8, 1), ((64, 1), 2, 2), ((6, 1), 0, 2)]
)
def test_global_vector_width_follows_known_divisors(divisors, alignment, expected):
    assert global_vector_width(loop_layout((128, 64), 128, 8), divisors, 2, alignment) == expected


def simulate(found, source, target):
    """Fill the target's registers from the source's by the conversion's arrays; names must match."""
    names = np.full((source.threads, source.registers), -1)
    inside = source.valid()
    names[inside] = np.ravel_multi_index(tuple(source.table()[inside].T), source.shape)
    valid = target.valid()
    got = names[found.source_thread - source.base, found.source_register]
    expected = np.ravel_multi_index(tuple(target.table()[valid].T), target.shape)
    assert np.array_equal(got[valid], expected)


ROWS = reduce_dim(accumulator(F16, (64, 64), 4, 1), 1)
ACC = accumulator(F16, (64, 64), 4, 1)
LOOP = loop_layout((128, 64), 128, 8)
LOOP_TURNED = Fragment((128, 64), (*LOOP.thread_modes, reg_mode(8, 8, 1, 1), reg_mode(8, 1, 0, 16)))
QUADS_APART = Fragment((64, 64), (*ACC.thread_modes, reg_mode(2, 1, 1, 1), reg_mode(8, 2, 1, 8), reg_mode(2, 16, 0, 8)))
# The quad's columns are dealt out singly instead of in pairs: same rows per warp, other lanes.
SINGLES = Fragment(
    (64, 64),
    (
        thread_mode(4, 1, 1, 1),
        thread_mode(8, 4, 0, 1),
        thread_mode(4, 32, 0, 16),
        reg_mode(16, 1, 1, 4),
        reg_mode(2, 16, 0, 8),
    ),
)
REVERSED = Fragment((4, 4), (reg_mode(4, 1, 0, 1), reg_mode(4, 4, 1, 1)))
CONVERSIONS = [
    ("same", ACC, operand_a(F16, (64, 64), 4, 1)),
    ("same", loop_layout((300,), 128), loop_layout((300,), 128)),
    ("same", replicated((4, 4), 64), loop_layout((4, 4), 1)),
    ("registers", LOOP, LOOP_TURNED),
    ("registers", ACC, QUADS_APART),
    ("registers", replicated((4, 4), 64), REVERSED),
    ("shuffle", replicated((8, 8), 64), loop_layout((8, 8), 64)),
    ("shuffle", replicated((64,), 128), ROWS),
    ("shuffle", ACC, SINGLES),
    ("shuffle", FunctionFragment((32,), lambda i: (i * 5) % 32, lambda i: i * 0), loop_layout((32,), 32)),
    ("shared", ACC, accumulator(F16, (64, 64), 2, 2)),
    ("shared", ACC, loop_layout((64, 64), 128, 8)),
    ("shared", ROWS, replicated((64,), 128)),
    ("shared", offset_threads(loop_layout((64,), 32), 32), loop_layout((64,), 32)),
]


@pytest.mark.parametrize("kind, source, target", CONVERSIONS)
def test_conversion_class_and_sources(kind, source, target):
    found = conversion(source, target)
    simulate(found, source, target)
    assert found.kind == kind
    assert (found.cost == 0) == (kind == "same")


def test_conversion_costs_are_ordered():
    same, moved = conversion(ACC, ACC), conversion(ACC, QUADS_APART)
    shuffled, shared = conversion(ACC, SINGLES), conversion(ACC, accumulator(F16, (64, 64), 2, 2))
    assert same.cost < moved.cost < shuffled.cost < shared.cost
    with pytest.raises(LayoutError):
        conversion(loop_layout((8,), 8), loop_layout((16,), 8))


def test_a_row_vector_is_local_to_the_loop_that_reduced_it():
    block = accumulator(F16, (64, 64), 4, 1)
    table = block.table()[..., :1]
    registers = local_registers(ROWS, table, block.valid())
    assert np.array_equal(ROWS.table()[np.arange(128)[:, None], registers], table)
    shifted = (table + 8) % 64
    assert local_registers(ROWS, shifted, block.valid()) is None or not np.array_equal(shifted, table)
    assert local_registers(ROWS, (table + 1) % 64, block.valid()) is None
    assert local_registers(ROWS, table + 64, block.valid()) is None
    assert local_registers(offset_threads(ROWS, 128), table, block.valid()) is None
    assert local_registers(replicate(ROWS, 2), table, block.valid()) is not None


def test_every_mma_c_matches_its_atom_count():
    assert {atom.c.registers for atom in mma_atoms()} == {2, 4}
