"""Matrix instruction rows against the formulas of the PTX ISA and the AMD ISA guides, spelled out per element."""

import numpy as np
import pytest

from tileworkbench.errors import InternalError, LayoutError
from tileworkbench.layout import (
    Atom,
    accumulator,
    find_atoms,
    fit_modes,
    mfma_atoms,
    mma_atoms,
    operand_a,
    operand_b,
    same,
    wgmma_accumulator,
    wgmma_atom,
    wgmma_atoms,
    wgmma_n,
    wgmma_operand_a,
)


def mma(name, a_dtype):
    return next(atom for atom in mma_atoms() if name in atom.instruction and atom.a_dtype == a_dtype)


# Per row: (row, column) of A element i, (k, n) of B element i, for lane = 4 g + t, as the PTX ISA writes them.
MMA_FORMULAS = {
    ("m16n8k8", "float16"): (
        lambda g, t, i: (g if i < 2 else g + 8, 2 * t + (i & 1)),
        lambda g, t, i: (2 * t + (i & 1), g),
    ),
    ("m16n8k16", "float16"): (
        lambda g, t, i: (g if i < 2 or 4 <= i < 6 else g + 8, 2 * t + (i & 1) + (8 if i >= 4 else 0)),
        lambda g, t, i: (2 * t + (i & 1) + (8 if i >= 2 else 0), g),
    ),
    ("m16n8k4", "tfloat32"): (lambda g, t, i: (g if i == 0 else g + 8, t), lambda g, t, i: (t, g)),
    ("m16n8k8", "tfloat32"): (
        lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
        lambda g, t, i: (t if i == 0 else t + 4, g),
    ),
    ("m8n8k16", "int8"): (lambda g, t, i: (g, 4 * t + i), lambda g, t, i: (4 * t + i, g)),
    ("m16n8k16", "int8"): (
        lambda g, t, i: (g if i < 4 else g + 8, 4 * t + (i & 3)),
        lambda g, t, i: (4 * t + i, g),
    ),
    ("m16n8k32", "float8_e4m3fn"): (
        lambda g, t, i: (g if i < 4 or 8 <= i < 12 else g + 8, 4 * t + (i & 3) + (16 if i >= 8 else 0)),
        lambda g, t, i: (4 * t + (i & 3) + (16 if i >= 4 else 0), g),
    ),
    ("m8n8k4", "float64"): (lambda g, t, i: (g, t), lambda g, t, i: (t, g)),
}
TWINS = [("m16n8k8", "bfloat16", "float16"), ("m16n8k16", "bfloat16", "float16"), ("m16n8k32", "int8", "float8_e4m3fn")]


@pytest.mark.parametrize("name, dtype", MMA_FORMULAS)
def test_mma_operands_by_formula(name, dtype):
    atom = mma(name, dtype)
    a_formula, b_formula = MMA_FORMULAS[name, dtype]
    for lane in range(32):
        for i in range(atom.a.registers):
            assert tuple(atom.a.table()[lane, i]) == a_formula(lane >> 2, lane % 4, i)
        for i in range(atom.b.registers):
            assert tuple(atom.b.table()[lane, i])[::-1] == b_formula(lane >> 2, lane % 4, i)
        for i in range(atom.c.registers):
            row = (lane >> 2) + (8 if i >= 2 else 0)
            assert tuple(atom.c.table()[lane, i]) == (row, (lane % 4) * 2 + (i & 1))


@pytest.mark.parametrize("name, dtype, twin", TWINS)
def test_mma_rows_of_one_width_share_fragments(name, dtype, twin):
    assert mma(name, dtype).a == mma(name, twin).a
    assert mma(name, dtype).b == mma(name, twin).b


def test_mma_names_and_versions():
    atom = find_atoms("sm_80", "float16", "float16", "float32")[0]
    assert atom.instruction == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    assert (atom.registers32("a"), atom.registers32("b"), atom.registers32("c")) == (4, 2, 4)
    half = find_atoms("sm_80", "float16", "float16", "float16")[0]
    assert half.registers32("c") == 2
    assert [a.shape for a in find_atoms("sm_75", "float16", "float16", "float32")] == [(16, 8, 8)]
    assert find_atoms("sm_80", "float8_e4m3fn", "float8_e5m2", "float32") == ()
    assert find_atoms("sm_89", "float8_e4m3fn", "float8_e5m2", "float32")[0].shape == (16, 8, 32)
    assert find_atoms("sm_90a", "float16", "float16", "float32")[0].shape == (64, 256, 16)
    assert find_atoms("sm_100a", "float16", "float16", "float32")[0].family == "mma"
    assert find_atoms("cpu", "float16", "float16", "float32") == ()


@pytest.mark.parametrize("n", [8, 24, 64, 176, 256])
def test_wgmma_accumulator_by_formula(n):
    table = wgmma_atom(n, "float16", "float16", "float32").c.table()
    thread, i = np.indices(table.shape[:2])
    row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // 2 % 2)
    column = 8 * (i // 4) + thread % 4 * 2 + i % 2
    assert np.array_equal(table, np.stack([row, column], axis=-1))


@pytest.mark.parametrize("dtype, packed", [("float16", 2), ("bfloat16", 2), ("tfloat32", 1), ("int8", 4)])
def test_wgmma_a_in_registers_by_formula(dtype, packed):
    c_dtype = "int32" if dtype == "int8" else "float32"
    table = wgmma_atom(64, dtype, dtype, c_dtype).a.table()
    thread, i = np.indices(table.shape[:2])
    word = i // packed
    row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (word % 2)
    column = packed * (thread % 4) + i % packed + 4 * packed * (word // 2)
    assert np.array_equal(table, np.stack([row, column], axis=-1))


def test_wgmma_rows():
    assert wgmma_n("float16") == tuple(range(8, 257, 8))
    assert 40 not in wgmma_n("int8") and {24, 32, 48, 256} <= set(wgmma_n("int8"))
    atom = wgmma_atom(128, "float8_e4m3fn", "float8_e5m2", "float16")
    assert atom.instruction == "wgmma.mma_async.sync.aligned.m64n128k32.f16.e4m3.e5m2"
    assert atom.registers32("c") == 32 and atom.b is None
    rows = wgmma_atoms("bfloat16", "bfloat16", "float32")
    assert [a.n for a in rows] == list(wgmma_n("bfloat16"))
    assert all(a.supports("sm_90a") and not a.supports("sm_100a") for a in rows)
    assert wgmma_atoms("float64", "float64", "float64") == ()
    with pytest.raises(LayoutError):
        wgmma_atom(12, "float16", "float16", "float32")
    with pytest.raises(LayoutError):
        wgmma_atom(64, "float16", "bfloat16", "float32")


@pytest.mark.parametrize("atom", mfma_atoms(), ids=lambda a: f"{a.instruction}-{a.archs[0]}")
def test_mfma_by_formula(atom):
    lane, i = np.indices(atom.a.table().shape[:2])
    run = atom.m * atom.k // 64
    expected = np.stack([lane % atom.m, lane // atom.m * run + i], axis=-1)
    assert np.array_equal(atom.a.table(), expected)
    assert np.array_equal(atom.b.table(), expected)
    lane, i = np.indices(atom.c.table().shape[:2])
    if atom.m == 16:
        row = lane // 16 * 4 + i
    else:
        row = i // 4 * 8 + lane // 32 * 4 + i % 4
    assert np.array_equal(atom.c.table(), np.stack([row, lane % atom.n], axis=-1))


def test_mfma_by_architecture():
    half = ("float16", "float16", "float32")
    assert [a.shape for a in find_atoms("gfx942", *half)] == [(16, 16, 16), (32, 32, 8)]
    assert [a.shape for a in find_atoms("gfx950", *half)][:2] == [(16, 16, 32), (32, 32, 16)]
    assert find_atoms("gfx942", "float8_e4m3fnuz", "float8_e4m3fnuz", "float32")[0].k == 32
    assert not find_atoms("gfx942", "float8_e4m3fn", "float8_e4m3fn", "float32")
    assert not find_atoms("gfx90a", "float8_e4m3fnuz", "float8_e4m3fnuz", "float32")
    assert {a.instruction for a in find_atoms("gfx942", "float32", "float32", "float32")} == {
        "__builtin_amdgcn_mfma_f32_16x16x4f32",
        "__builtin_amdgcn_mfma_f32_32x32x2f32",
    }


@pytest.mark.parametrize("units_m, units_n", [(1, 1), (4, 1), (2, 2), (1, 4)])
@pytest.mark.parametrize(
    "atom", [mma("m16n8k16", "float16"), mfma_atoms()[0], mfma_atoms()[1]], ids=lambda a: a.instruction
)
def test_block_tiles_give_each_instruction_contiguous_registers(atom, units_m, units_n):
    m, n, k = 128, 128, 64
    cases = [
        (accumulator(atom, (m, n), units_m, units_n), atom.c, (m // units_m, n // units_n), (True, True)),
        (operand_a(atom, (m, k), units_m, units_n), atom.a, (m // units_m, k), (True, False)),
        (operand_b(atom, (n, k), units_m, units_n), atom.b, (n // units_n, k), (False, True)),
    ]
    for fragment, small, own, (by_m, by_n) in cases:
        assert fragment.threads == atom.threads * units_m * units_n
        table = fragment.table()
        for unit_n, unit_m in np.ndindex(units_n, units_m):
            unit = table[(unit_m + units_m * unit_n) * atom.threads :][: atom.threads]
            origin = [unit_m * own[0] if by_m else 0, 0]
            if by_n:
                origin[1 if by_m else 0] += unit_n * (own[1] if by_m else own[0])
            steps = np.ndindex(own[0] // small.shape[0], own[1] // small.shape[1])
            for number, (i, j) in enumerate(steps):
                run = unit[:, number * small.registers :][:, : small.registers]
                moved = np.array(origin) + np.array([i * small.shape[0], j * small.shape[1]])
                assert np.array_equal(run, small.table() + moved)


def test_accumulator_is_the_next_a_operand():
    atom = mma("m16n8k16", "float16")
    assert same(accumulator(atom, (64, 64), 4, 1), operand_a(atom, (64, 64), 4, 1))
    for n, n_inst in [(128, None), (176, 176), (64, 32)]:
        assert same(wgmma_accumulator((128, n), 2, 1, n_inst), wgmma_operand_a("bfloat16", (128, n), 2))
    assert not same(wgmma_accumulator((64, 64), 1), wgmma_operand_a("tfloat32", (64, 64), 1))


def test_wgmma_block_tiles():
    block = wgmma_accumulator((256, 192), 2, 1, 96)
    table = block.table()
    small = wgmma_atom(96, "float16", "float16", "float32").c
    for group in range(2):
        for number, (i, j) in enumerate(np.ndindex(2, 2)):
            run = table[group * 128 :][:128, number * 48 :][:, :48]
            assert np.array_equal(run, small.table() + np.array([group * 128 + i * 64, j * 96]))


def test_tiles_that_do_not_divide_are_errors():
    atom = mma("m16n8k16", "float16")
    with pytest.raises(LayoutError):
        accumulator(atom, (48, 64), 4, 1)
    with pytest.raises(LayoutError):
        operand_b(wgmma_atom(64, "float16", "float16", "float32"), (64, 64), 1, 1)


def test_rows_refuse_to_be_inconsistent():
    good = mma("m16n8k16", "float16")
    for change in ({"k": 8}, {"threads": 64}, {"c": None}, {"min_sm": 0}, {"archs": ("sm_90",)}):
        fields = {name: getattr(good, name) for name in good.__dataclass_fields__}
        with pytest.raises(InternalError):
            Atom(**{**fields, **change})


def test_atom_fragments_are_condensed_products():
    for atom in (*mma_atoms(), *mfma_atoms()):
        assert fit_modes(atom.c) is not None
