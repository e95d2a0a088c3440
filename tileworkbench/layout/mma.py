"""mma.sync rows: one warp, operands in registers. Figures: PTX ISA, "Matrix fragments for mma.m*n*k*".

In every row lane = 4 * group + quad. A register of A holds 32 bits of one row at columns quad * (32 / bits) …; its
neighbours are 8 rows below, then half of K to the right. B follows the same pattern over (N, K) without the rows below;
C and D hold two columns at 2 * quad and the row 8 below.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from tileworkbench.layout.atoms import BITS, Atom
from tileworkbench.layout.fragment import Fragment, Mode, reg_mode, thread_mode

PTX_TYPE = {
    "float64": "f64",
    "float32": "f32",
    "tfloat32": "tf32",
    "int32": "s32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int8": "s8",
    "uint8": "u8",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
}

INTEGERS = ("int8", "uint8")
FP8 = ("float8_e4m3fn", "float8_e5m2")

# (m, n, k), pairs of (A, B), accumulators, first compute capability
ROWS = (
    ((16, 8, 8), (("float16", "float16"),), ("float16", "float32"), 75),
    ((16, 8, 16), (("float16", "float16"),), ("float16", "float32"), 80),
    ((16, 8, 8), (("bfloat16", "bfloat16"),), ("float32",), 80),
    ((16, 8, 16), (("bfloat16", "bfloat16"),), ("float32",), 80),
    ((16, 8, 4), (("tfloat32", "tfloat32"),), ("float32",), 80),
    ((16, 8, 8), (("tfloat32", "tfloat32"),), ("float32",), 80),
    ((8, 8, 16), tuple(product(INTEGERS, INTEGERS)), ("int32",), 75),
    ((16, 8, 16), tuple(product(INTEGERS, INTEGERS)), ("int32",), 80),
    ((16, 8, 32), tuple(product(INTEGERS, INTEGERS)), ("int32",), 80),
    ((16, 8, 32), tuple(product(FP8, FP8)), ("float32",), 89),
    ((8, 8, 4), (("float64", "float64"),), ("float64",), 80),
)


@cache
def operand_fragment(rows: int, k: int, bits: int) -> Fragment:
    """A (M, K) or B (N, K) of one warp: `rows` is 8 or 16."""
    packed = max(32 // bits, 1)
    quad_k = 4 * packed
    modes: list[Mode] = [thread_mode(4, 1, 1, packed), thread_mode(8, 4, 0, 1), reg_mode(packed, 1, 1, 1)]
    modes.append(reg_mode(rows // 8, packed, 0, 8))
    modes.append(reg_mode(k // quad_k, packed * rows // 8, 1, quad_k))
    return Fragment((rows, k), tuple(modes))


@cache
def accumulator_fragment(rows: int) -> Fragment:
    """C and D (M, 8) of one warp."""
    pair = reg_mode(2, 1, 1, 1)
    return Fragment((rows, 8), (thread_mode(4, 1, 1, 2), thread_mode(8, 4, 0, 1), pair, reg_mode(rows // 8, 2, 0, 8)))


@cache
def mma_atoms() -> tuple[Atom, ...]:
    """Every mma.sync row."""
    atoms = []
    for (m, n, k), pairs, accumulators, min_sm in ROWS:
        for (a_dtype, b_dtype), c_dtype in product(pairs, accumulators):
            a_type, b_type, c_type = PTX_TYPE[a_dtype], PTX_TYPE[b_dtype], PTX_TYPE[c_dtype]
            name = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{c_type}.{a_type}.{b_type}.{c_type}"
            a, b = operand_fragment(m, k, BITS[a_dtype]), operand_fragment(n, k, BITS[b_dtype])
            c = accumulator_fragment(m)
            atoms.append(Atom(name, "mma", m, n, k, a_dtype, b_dtype, c_dtype, 32, a, b, c, min_sm))
    return tuple(atoms)
