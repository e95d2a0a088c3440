"""Fragments in mode form, over every element: bijection, inverses, digits, transforms, function form."""

import itertools

import numpy as np
import pytest

from tileworkbench.errors import LayoutError
from tileworkbench.layout import (
    Fragment,
    FunctionFragment,
    LinearLoop,
    condense,
    expand,
    fit_modes,
    fragment_from_function,
    loop_layout,
    offset_threads,
    padded_loop,
    permute_dims,
    reduce_dim,
    reg_mode,
    repeat,
    replicate,
    replicated,
    same,
    split_mode,
    thread_mode,
    tile,
    with_threads,
)

QUADS = Fragment(
    (16, 8),
    (
        thread_mode(4, 1, 1, 2),
        thread_mode(8, 4, 0, 1),
        reg_mode(2, 1, 1, 1),
        reg_mode(2, 2, 0, 8),
    ),
)
EXAMPLES = [
    QUADS,
    tile(QUADS, (2, 4)),
    repeat(QUADS, 0, 3, "thread"),
    repeat(QUADS, 1, 4, "reg", 2),
    repeat(repeat(QUADS, 0, 2, "thread", 1), 1, 5),
    replicate(QUADS, 3),
    replicate(QUADS, 2, 4),
    reduce_dim(tile(QUADS, (2, 2)), 1),
    reduce_dim(QUADS, 0, keep=True),
    permute_dims(QUADS, (1, 0)),
    expand(QUADS, (2, 3)),
    offset_threads(tile(QUADS, (1, 2)), 128),
    Fragment((13, 7), QUADS.modes),
    replicated((3, 4), 5),
    loop_layout((128, 64), 128, 8),
    loop_layout((1,), 128),
    loop_layout((7, 33), 128, 4),
    loop_layout((300,), 128),
    loop_layout((128, 96), 128, 8),
    loop_layout((3, 5, 16), 48, 4),
    loop_layout((2, 3, 64), 96, 2),
    padded_loop((300,), 128),
    padded_loop((7, 33), 128),
    padded_loop((3, 5, 24), 96, 8),
    padded_loop((1,), 32),
    reduce_dim(padded_loop((7, 36), 128, 4), 1),
    FunctionFragment((5, 6), lambda i, j: (i * 6 + j) % 7, lambda i, j: (i * 6 + j) // 7),
    FunctionFragment((6, 4), lambda i, j, r: i % 3 + 3 * r, lambda i, j: i // 3 * 4 + j, 2),
]


def test_the_mma_quad_by_formula():
    table = QUADS.table()
    for lane, register in itertools.product(range(32), range(4)):
        expected = [lane // 4 + 8 * (register // 2), lane % 4 * 2 + register % 2]
        assert table[lane, register].tolist() == expected


@pytest.mark.parametrize("fragment", EXAMPLES, ids=lambda f: f.describe())
def test_every_element_is_held_exactly_replication_times(fragment):
    table, valid = fragment.table(), fragment.valid()
    assert table.shape == (fragment.threads, fragment.registers, fragment.rank)
    counts = np.zeros(fragment.shape, dtype=int)
    np.add.at(counts, tuple(table[valid].T), 1)
    assert (counts == fragment.replication).all()
    assert fragment.guarded == (not valid.all())


@pytest.mark.parametrize("fragment", EXAMPLES, ids=lambda f: f.describe())
def test_owner_inverts_the_table_and_locate_finds_every_holder(fragment):
    table, valid = fragment.table(), fragment.valid()
    threads = np.arange(fragment.base, fragment.base + fragment.threads)
    grid = np.indices(fragment.shape).reshape(fragment.rank, -1)
    owner, register = fragment.owner(*grid)
    owner, register = (np.broadcast_to(part, grid.shape[1:]) for part in (owner, register))
    assert np.array_equal(table[owner - fragment.base, register].T, grid)
    linear = np.where(
        valid,
        np.ravel_multi_index(tuple(np.moveaxis(table, -1, 0)), fragment.shape, mode="clip"),
        -1,
    )
    expected = np.zeros((fragment.threads, grid.shape[1]), dtype=bool)
    expected[np.nonzero(valid)[0], linear[valid]] = True
    found, held = fragment.locate(threads[:, None], *grid)
    assert np.array_equal(np.broadcast_to(held, expected.shape), expected)
    assert np.array_equal(np.broadcast_to(found, register.shape), register)
    holders = np.stack(np.broadcast_arrays(register, *fragment.replica_threads(*grid))[1:])
    assert (holders[0] == owner).all()
    assert expected[holders - fragment.base, np.arange(grid.shape[1])].all()
    assert (np.diff(np.sort(holders, axis=0), axis=0) > 0).all()


@pytest.mark.parametrize("fragment", EXAMPLES, ids=lambda f: f.describe())
def test_coordinate_register_and_guards_agree_with_the_table(fragment):
    table, valid = fragment.table(), fragment.valid()
    threads = np.arange(fragment.base, fragment.base + fragment.threads)
    for indices in np.ndindex(*fragment.reg_extents):
        register = fragment.register(indices)
        assert tuple(fragment.register_digits(register)) == indices
        coords = np.broadcast_arrays(threads, *fragment.coordinate(threads, indices))[1:]
        assert np.array_equal(np.stack(coords, axis=-1), table[:, register])
        if fragment.closed_form:
            inside = np.ones(fragment.threads, dtype=bool)
            for condition in fragment.guards(threads, indices):
                inside &= condition
            assert np.array_equal(inside, valid[:, register])


@pytest.mark.parametrize("fragment", EXAMPLES, ids=lambda f: f.describe())
def test_python_ints_answer_as_arrays_do(fragment):
    thread = fragment.base + fragment.threads * 2 // 3
    for indices in list(np.ndindex(*fragment.reg_extents))[::7]:
        coords = fragment.coordinate(thread, indices)
        register = fragment.register(indices)
        assert tuple(int(c) for c in coords) == tuple(fragment.table()[thread - fragment.base, register])
        if fragment.valid()[thread - fragment.base, register]:
            found, held = fragment.locate(thread, *coords)
            assert found == register and held


def test_reg_modes_are_outermost_first():
    assert [m.stride for m in tile(QUADS, (2, 4)).reg_modes] == [16, 4, 2, 1]


def test_repeat_along_threads_gives_each_warp_its_rows():
    warps = repeat(QUADS, 0, 4, "thread")
    assert warps.shape == (64, 8) and warps.threads == 128
    for thread in range(128):
        assert warps.table()[thread, 0].tolist() == [
            thread // 32 * 16 + thread % 32 // 4,
            thread % 4 * 2,
        ]


def test_reduce_turns_threads_into_replicas_and_drops_registers():
    rows = reduce_dim(tile(QUADS, (2, 4)), 1)
    assert (rows.shape, rows.threads, rows.registers, rows.replication) == (
        (32,),
        32,
        4,
        4,
    )
    for lane, register in itertools.product(range(32), range(4)):
        assert rows.table()[lane, register, 0] == lane // 4 + 8 * register
    assert [rows.replica(lane) for lane in range(8)] == [0, 1, 2, 3] * 2
    assert reduce_dim(rows, 0).shape == (1,)


def test_replicas_are_numbered_and_home_is_replica_zero():
    fragment = replicate(replicate(QUADS, 2, 4), 3)
    table = fragment.table()
    for thread in range(fragment.threads):
        home = fragment.home(thread)
        assert fragment.replica(home) == 0
        assert np.array_equal(table[home], table[thread])
    replicas = [fragment.replica(thread) for thread in range(fragment.threads)]
    assert sorted(set(replicas)) == list(range(6))


def test_split_and_condense_keep_the_map():
    wide = tile(QUADS, (2, 4))
    mode = next(m for m in wide.modes if m.extent == 8)
    assert same(split_mode(wide, mode, 2), wide)
    assert len(split_mode(wide, mode, 2).modes) == len(wide.modes) + 1
    assert condense(split_mode(wide, mode, 2)) == condense(wide)


def test_permute_and_expand_by_table():
    assert np.array_equal(permute_dims(QUADS, (1, 0)).table(), QUADS.table()[..., ::-1])
    grown = expand(QUADS, (2, 3))
    for a, b in itertools.product(range(2), range(3)):
        run = grown.table()[:, (a * 3 + b) * 4 : (a * 3 + b) * 4 + 4]
        assert (run[..., 0] == a).all() and (run[..., 1] == b).all()
        assert np.array_equal(run[..., 2:], QUADS.table())


def test_with_threads_replicates():
    assert with_threads(QUADS, 128).replication == 4
    with pytest.raises(LayoutError):
        with_threads(QUADS, 48)


@pytest.mark.parametrize("fragment", [f for f in EXAMPLES if isinstance(f, Fragment) and not f.guarded])
def test_modes_are_recovered_from_any_function_form(fragment):
    if fragment.base == 0 and fragment.replication == 1:
        rebuilt = fragment_from_function(
            fragment.shape,
            lambda *c: fragment.owner(*c)[0],
            lambda *c: fragment.owner(*c)[1],
        )
        assert isinstance(rebuilt, Fragment)
        assert same(rebuilt, fragment)
    assert fit_modes(fragment) == condense(fragment)


def test_function_with_replicas_becomes_modes():
    fragment = fragment_from_function((8, 4), lambda i, j, r: i + 8 * r, lambda i, j: j, 2)
    assert isinstance(fragment, Fragment)
    assert fragment.replication == 2


def test_lines_that_look_like_modes_are_not_enough():
    twisted = fragment_from_function((4, 4), lambda i, j: i, lambda i, j: j ^ i)
    assert isinstance(twisted, FunctionFragment)
    assert twisted.table()[3, 1].tolist() == [3, 2]


def test_function_form_without_modes_has_no_closed_form():
    fragment = fragment_from_function((5, 6), lambda i, j: (i * 6 + j) % 7, lambda i, j: (i * 6 + j) // 7)
    assert isinstance(fragment, FunctionFragment) and not fragment.closed_form
    with pytest.raises(LayoutError):
        fragment.coordinate("tx", (0,))


def test_loop_order_is_vector_then_thread_then_step():
    for shape, threads, vector in [
        ((128, 64), 128, 8),
        ((7, 33), 128, 3),
        ((128, 96), 128, 8),
        ((300,), 128, 1),
    ]:
        loop = loop_layout(shape, threads, vector)
        table = loop.table()
        for thread, register in itertools.product(range(threads), range(loop.registers)):
            linear = (register // vector * threads + thread) * vector + register % vector
            inside = linear < np.prod(shape)
            assert loop.valid()[thread, register] == inside
            if inside:
                assert tuple(table[thread, register]) == np.unravel_index(linear, shape)


def test_loops_that_divide_are_modes_and_others_linear():
    assert isinstance(loop_layout((128, 64), 128, 8), Fragment)
    assert isinstance(loop_layout((7, 33), 128), LinearLoop)
    assert loop_layout((128, 96), 128, 8).guard(0, (0, 0)) is None
    assert loop_layout((7, 33), 128, 4).registers == 2
    with pytest.raises(LayoutError):
        loop_layout((0, 3), 128)


def test_padded_loops_use_every_thread_once_or_as_replicas():
    loop = padded_loop((7, 33), 128)
    assert (loop.threads, loop.covered, loop.replication, loop.guard_dims) == (128, (8, 64), 1, (0, 1))
    assert padded_loop((1,), 32).replication == 32
    assert padded_loop((128, 64), 128, 8).guard(0, (0, 0)) is None
    vectors = padded_loop((7, 36), 128, 4)
    assert (np.diff(vectors.table()[:, :4, 1], axis=1) == 1).all() and not (vectors.table()[:, 0, 1] % 4).any()
    rows = reduce_dim(vectors, 1)
    assert (rows.shape, rows.threads, rows.guarded) == ((7,), 128, True)


@pytest.mark.parametrize(
    "shape, modes",
    [
        ((8,), (thread_mode(4, 1, 0, 1),)),
        ((8,), (thread_mode(8, 2, 0, 1),)),
        ((8,), (thread_mode(8, 1, 0, 2),)),
        ((8,), (thread_mode(8, 1, 1, 1),)),
        ((8, 2), (thread_mode(8, 1, 0, 1), reg_mode(2, 2, 1, 1))),
        ((8,), (thread_mode(4, 1, 0, 1), thread_mode(2, 4, 0, 2))),
    ],
)
def test_modes_that_are_no_bijection_are_refused(shape, modes):
    with pytest.raises(LayoutError):
        Fragment(shape, modes)


def test_colliding_function_is_refused():
    with pytest.raises(LayoutError):
        FunctionFragment((4, 4), lambda i, j: i, lambda i, j: j // 2)
