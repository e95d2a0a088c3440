"""mfma rows: one wave of 64 lanes. Figures: AMD CDNA3 and CDNA4 ISA guides, "Matrix fused multiply-add".

A and B: lane % M is the row (B: the column), lane // M picks a run of consecutive k. C and D: lane % N is the column;
four consecutive registers are four consecutive rows at 4 * (lane // N), the next four lie 4 * (64 / N) rows below.
"""

from __future__ import annotations

from functools import cache

from tileworkbench.layout.atoms import Atom
from tileworkbench.layout.fragment import Fragment, reg_mode, thread_mode

LANES = 64
CDNA2, CDNA3, CDNA4 = "gfx90a", "gfx942", "gfx950"
ALL, SINCE_3 = (CDNA2, CDNA3, CDNA4), (CDNA3, CDNA4)

# Suffix of the builtin, M = N, K, A, B, C, architectures. The fp8 encodings differ: fnuz on gfx942, OCP on gfx950.
FP8_ROWS = tuple(
    (f"f32_{mn}x{mn}x{k}_{a}_{b}", mn, k, types[a], types[b], "float32", (arch,))
    for arch, types in (
        (CDNA3, {"fp8": "float8_e4m3fnuz", "bf8": "float8_e5m2fnuz"}),
        (CDNA4, {"fp8": "float8_e4m3fn", "bf8": "float8_e5m2"}),
    )
    for mn, k in ((16, 32), (32, 16))
    for a in ("fp8", "bf8")
    for b in ("fp8", "bf8")
)
ROWS = (
    ("f32_16x16x16f16", 16, 16, "float16", "float16", "float32", ALL),
    ("f32_32x32x8f16", 32, 8, "float16", "float16", "float32", ALL),
    ("f32_16x16x16bf16_1k", 16, 16, "bfloat16", "bfloat16", "float32", ALL),
    ("f32_32x32x8bf16_1k", 32, 8, "bfloat16", "bfloat16", "float32", ALL),
    ("f32_16x16x4f32", 16, 4, "float32", "float32", "float32", ALL),
    ("f32_32x32x2f32", 32, 2, "float32", "float32", "float32", ALL),
    ("i32_16x16x16i8", 16, 16, "int8", "int8", "int32", (CDNA2,)),
    ("i32_32x32x8i8", 32, 8, "int8", "int8", "int32", (CDNA2,)),
    ("i32_16x16x32_i8", 16, 32, "int8", "int8", "int32", SINCE_3),
    ("i32_32x32x16_i8", 32, 16, "int8", "int8", "int32", SINCE_3),
    ("f32_16x16x32_f16", 16, 32, "float16", "float16", "float32", (CDNA4,)),
    ("f32_32x32x16_f16", 32, 16, "float16", "float16", "float32", (CDNA4,)),
    ("f32_16x16x32_bf16", 16, 32, "bfloat16", "bfloat16", "float32", (CDNA4,)),
    ("f32_32x32x16_bf16", 32, 16, "bfloat16", "bfloat16", "float32", (CDNA4,)),
    *FP8_ROWS,
)


def mfma_operand_fragment(rows: int, k: int) -> Fragment:
    """A (M, K) or B (N, K) of one wave."""
    run = k * rows // LANES
    return Fragment(
        (rows, k), (thread_mode(rows, 1, 0, 1), thread_mode(LANES // rows, rows, 1, run), reg_mode(run, 1, 1, 1))
    )


def mfma_accumulator_fragment(n: int) -> Fragment:
    """C and D (N, N) of one wave."""
    groups = LANES // n
    lanes = (thread_mode(n, 1, 1, 1), thread_mode(groups, n, 0, 4))
    return Fragment((n, n), (*lanes, reg_mode(4, 1, 0, 1), reg_mode(n // (4 * groups), 4, 0, 4 * groups)))


@cache
def mfma_atoms() -> tuple[Atom, ...]:
    """Every mfma row."""
    atoms = []
    for suffix, mn, k, a_dtype, b_dtype, c_dtype, archs in ROWS:
        name = f"__builtin_amdgcn_mfma_{suffix}"
        operand, c = mfma_operand_fragment(mn, k), mfma_accumulator_fragment(mn)
        atoms.append(Atom(name, "mfma", mn, mn, k, a_dtype, b_dtype, c_dtype, LANES, operand, operand, c, archs=archs))
    return tuple(atoms)
