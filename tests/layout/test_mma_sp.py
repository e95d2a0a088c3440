"""Sparse matrix instructions: every index of the metadata against the manual's figures, and probes of every row."""

from __future__ import annotations

import numpy as np
import pytest

from tests.layout.probes import sparse_operands, sparse_probe, wgmma_sparse_probe
from tests.layout.test_probes import name, on_card, simulate, stored
from tileworkbench.errors import InternalError, LayoutError
from tileworkbench.ir.dtype import DTYPES
from tileworkbench.layout import find_atoms, metadata, metadata_elements, metadata_fragment, mma_sp_atoms
from tileworkbench.layout.atoms import BITS, Atom
from tileworkbench.layout.mma_sp import gives, metadata_rows_fragment, selectors
from tileworkbench.layout.wgmma import wgmma_sp_atom
from tileworkbench.simulate.thread.fragments import sparse_fragments
from tileworkbench.simulate.thread.sparse import fields_of

ATOMS = mma_sp_atoms()
WIDTHS = (8, 16, 32)


def figure(bits: int, lane: int, field: int) -> tuple[int, int]:
    """(row, field of the row) of the `field`-th 4 bits of a lane's metadata: PTX ISA, figures of the metadata of
    m16n8k32 with .f16 (and m16n8k16 with .tf32), selector 0, and of m16n8k64 with 8-bit types."""
    group, thread = lane >> 2, lane % 4
    if bits == 8:
        return group + 8 * (thread % 2), 8 * (thread // 2) + field
    return group + 8 * (field // 4), 4 * (thread % 2) + field % 4


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_every_field_is_where_the_figures_say(bits: int) -> None:
    table = metadata_fragment(bits, 4).table()
    assert table.shape == (32, 8, 2)
    for lane in range(32):
        for field in range(8):
            assert tuple(table[lane, field]) == figure(bits, lane, field)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_half_of_k_has_the_fields_of_the_first_half(bits: int) -> None:
    """PTX ISA, figures of the metadata of m16n8k16 with .f16, m16n8k8 with .tf32 and m16n8k32 with 8-bit integers."""
    table = metadata_fragment(bits, 4, 1).table()
    for lane in range(32):
        for field in range(8):
            row = lane // 4 + 8 * (lane % 2 if bits == 8 else field // 4)
            assert tuple(table[lane, field]) == (row, field if bits == 8 else field % 4)


def test_selectors_choose_lanes_of_a_quad() -> None:
    """PTX ISA, sparse matrix storage: one lane of four, a pair of them, or all."""
    chosen = {
        (16, 2): ["1100", "0011"], (16, 1): ["1000", "0100", "0010", "0001"], (32, 2): ["1100", "0011"],
        (32, 1): ["1000", "0100", "0010", "0001"], (8, 2): ["1111"], (8, 1): ["1100", "0011"],
    }  # fmt: skip
    for (bits, halves), quads in chosen.items():
        fragment = metadata_fragment(bits, 4, halves)
        assert selectors(fragment) == len(quads)
        for selector, quad in enumerate(quads):
            lanes = gives(fragment, selector)
            assert "".join(str(int(x)) for x in lanes) == quad * 8
            held = fragment.table()[lanes].reshape(-1, 2)  # each field once
            assert len(held) == len({tuple(x) for x in held}) == np.prod(fragment.shape)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_the_lanes_of_selector_0_hold_every_field_once(bits: int) -> None:
    fragment = metadata_fragment(bits, 4)
    giving = fragment.table()[[lane for lane in range(32) if bits == 8 or lane % 4 < 2]].reshape(-1, 2)
    fields = 16 if bits == 8 else 8
    assert len(giving) == 16 * fields and len({tuple(x) for x in giving}) == 16 * fields
    assert fragment.shape == (16, fields) and fragment.replication == (1 if bits == 8 else 2)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_wider_elements_are_runs_of_fields(bits: int, width: int) -> None:
    fields = metadata_fragment(bits, 4).table()
    if width == 32 and bits > 8:
        with pytest.raises(LayoutError, match="one lane holds 16 bits of a row"):
            metadata_fragment(bits, width)
        rows = metadata_rows_fragment().table()
        for lane in range(32):
            for i in range(8):
                assert fields[lane, i, 0] == rows[lane, i // 4, 0] and fields[lane, i, 1] // 4 == lane % 2
        return
    run = width // 4
    table = metadata_fragment(bits, width).table()
    assert table.shape[1] * width == 32
    for lane in range(32):
        for i in range(8):
            row, column = table[lane, i // run]
            assert tuple(fields[lane, i]) == (row, column * run + i % run)


def test_one_element_speaks_of_a_run_of_a_row() -> None:
    assert [metadata_elements(16, w) for w in WIDTHS] == [8, 16, 32]
    assert [metadata_elements(8, w) for w in WIDTHS] == [8, 16, 32]
    assert [metadata_elements(32, w) for w in WIDTHS] == [4, 8, 16]


@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_the_thread_machine_reads_the_same_bits(bits: int, halves: int) -> None:
    k = 256 * halves // bits
    numbers = np.random.default_rng(0).integers(0, 16, (16, k // (2 if bits == 32 else 4)))
    fragment = metadata_fragment(bits, 4, halves)
    table = fragment.table()
    held = numbers[table[..., 0], table[..., 1]].astype(np.uint32)
    words = (held << np.arange(0, 32, 4, dtype=np.uint32)).sum(1).astype(np.uint32)
    for selector in range(selectors(fragment)):
        given = np.where(gives(fragment, selector), words, np.uint32(0xDEADBEEF))  # the other lanes give nothing
        assert np.array_equal(fields_of(given, k, bits // 8, selector), numbers)


@pytest.mark.parametrize("atom", ATOMS, ids=name)
def test_operands_are_those_of_the_thread_machine(atom: Atom) -> None:
    table = sparse_fragments(atom.instruction, DTYPES[atom.a_dtype].bytes)
    for operand, fragment, turned in ((table.a, atom.a, False), (table.b, atom.b, True), (table.c, atom.c, False)):
        row, column = np.moveaxis(fragment.table().transpose(1, 0, 2), -1, 0)
        row, column = (column, row) if turned else (row, column)
        assert np.array_equal(operand.flat, row * operand.columns + column)


def test_a_block_tile_spreads_over_warps() -> None:
    fragment = metadata(16, 16, (64, 4), 2, 2)  # two warps along M, two that share their rows, two steps along K
    table = fragment.table()
    assert fragment.threads == 128 and fragment.registers == 8
    for thread in range(128):
        lane, warp_m = thread % 32, thread // 32 % 2
        for register in range(8):
            low, step, tile = register % 2, register // 2 % 2, register // 4
            want = (32 * warp_m + 16 * tile + lane // 4 + 8 * low, 2 * step + lane % 2)
            assert tuple(table[thread, register]) == want
    assert metadata(16, 32, (32, 1), 1, 2).registers == 4


def test_rows_by_architecture() -> None:
    halves = [a.shape for a in find_atoms("sm_80", "float16", "float16", "float32", "mma.sp")]
    assert halves == [(16, 8, 32), (16, 8, 16)]
    assert not find_atoms("sm_80", "float8_e5m2", "float8_e5m2", "float32", "mma.sp")
    assert find_atoms("sm_90a", "float8_e5m2", "float8_e4m3fn", "float32", "mma.sp")[0].k == 64
    assert not find_atoms("sm_75", "float16", "float16", "float32", "mma.sp")
    assert not find_atoms("gfx942", "float16", "float16", "float32", "mma.sp")
    assert all(a.metadata is None for a in find_atoms("sm_90a", "float16", "float16", "float32"))
    atom = ATOMS[0]
    with pytest.raises(InternalError, match="metadata"):
        type(atom)(**{**vars(atom), "metadata": metadata_fragment(16, 8)})


CASES = [
    (a, w, s)
    for a in ATOMS
    for w in WIDTHS
    if w < 32 or BITS[a.a_dtype] == 8
    for s in range(selectors(a.metadata) if w == 8 else 1)
]


@pytest.mark.parametrize(("atom", "width", "selector"), CASES, ids=name)
def test_probe(atom: Atom, width: int, selector: int) -> None:
    *inputs, product = sparse_operands(atom, width)
    simulate(sparse_probe(atom, width, selector), inputs, product, "sm_90a")


# (dtypes, n, metadata bits, spans of A and B, majors); along K an operand stays in its panel: B's step is 64 bytes.
GROUPS: list[tuple[Atom, int, tuple[int, int], str, str]] = [
    (wgmma_sp_atom(n, *kinds), width, spans, a_major, "k")
    for kinds in (("float16", "float16", "float32"), ("bfloat16", "bfloat16", "float32"),
                  ("tfloat32", "tfloat32", "float32"), ("int8", "uint8", "int32"),
                  ("float8_e4m3fn", "float8_e5m2", "float32"))
    for n, width, spans, a_major in ((8, 8, (32, 64), "k"), (64, 16, (64, 128), "reg"), (256, 16, (128, 64), "k"))
]  # fmt: skip
GROUPS += [
    (wgmma_sp_atom(n, "float16", "float16", "float16"), 16, spans, a, b)
    for n, spans, a, b in (
        (64, (128, 128), "mn", "k"), (96, (64, 64), "k", "mn"),
        (256, (32, 128), "mn", "mn"), (32, (32, 32), "reg", "mn"),
    )
]  # fmt: skip
Group = pytest.mark.parametrize(("atom", "width", "spans", "a_major", "b_major"), GROUPS, ids=name)


def group_inputs(atom: Atom, width: int, a_major: str, b_major: str, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    a, e, b, product = sparse_operands(atom, width, seed)
    return [stored(a, a_major), e, stored(b, b_major)], product


@Group
def test_group_probe(atom: Atom, width: int, spans: tuple[int, int], a_major: str, b_major: str) -> None:
    inputs, product = group_inputs(atom, width, a_major, b_major, 0)
    simulate(wgmma_sparse_probe(atom, width, spans, a_major, b_major), inputs, product, "sm_90a")


@pytest.mark.gpu
@Group
def test_group_probe_on_card(atom: Atom, width: int, spans: tuple[int, int], a_major: str, b_major: str) -> None:
    inputs, product = group_inputs(atom, width, a_major, b_major, 1)
    on_card(wgmma_sparse_probe(atom, width, spans, a_major, b_major), inputs, product)


def test_rows_of_warpgroups() -> None:
    atom = wgmma_sp_atom(128, "int8", "int8", "int32")
    assert atom.shape == (64, 128, 64) and atom.stored_k == 32 and atom.a is not None and atom.a.shape == (64, 32)
    assert atom.instruction == "wgmma.mma_async.sp.sync.aligned.m64n128k64.s32.s8.s8"
    fields = atom.metadata.table()  # type: ignore[union-attr]
    for thread in range(128):
        for field in range(8):
            row, column = figure(8, thread % 32, field)
            assert tuple(fields[thread, field]) == (row + thread // 32 * 16, column)
    with pytest.raises(LayoutError, match="no such instruction"):
        wgmma_sp_atom(64, "float16", "int8", "float32")


@pytest.mark.gpu
@pytest.mark.parametrize(("atom", "width", "selector"), CASES, ids=name)
def test_probe_on_card(atom: Atom, width: int, selector: int) -> None:
    *inputs, product = sparse_operands(atom, width, 1)
    on_card(sparse_probe(atom, width, selector), inputs, product)
