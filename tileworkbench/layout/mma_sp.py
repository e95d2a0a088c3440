"""mma.sp rows: one warp, A half stored (2:4, for tf32 1:2), its metadata in one 32-bit register of a lane. Figures: PTX
ISA, "Matrix fragments for sparse mma.m*n*k*" and "Sparse matrix storage".

The held half of A lies like the dense A of half the K, B and C like those of the dense instruction. Metadata is made of
4-bit fields, one for each group of four elements of a row (two of tf32), the row's first group lowest. Only the larger
instruction of each type is here: the smaller one moves the same operands in more steps.

With operands of 16 or 32 bits a row has 8 fields; lanes 0 and 1 of each quad give the metadata (selector 0), each the
4 fields of its half of K: bits 0 to 15 for row lane / 4, the other bits for the row 8 below. With operands of 8 bits a
row has 16 fields and every lane gives 8 of one row: odd lanes those of the row 8 below, lanes 2 and 3 those of the
second half.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from tileworkbench.errors import LayoutError
from tileworkbench.layout.atoms import BITS, FIELD_BITS, Atom
from tileworkbench.layout.fragment import Fragment, reg_mode, thread_mode
from tileworkbench.layout.mma import FP8, INTEGERS, PTX_TYPE, accumulator_fragment, operand_fragment

M, N = 16, 8
# K, pairs of (A, B), accumulators, first compute capability
ROWS = (
    (32, (("float16", "float16"),), ("float16", "float32"), 80),
    (32, (("bfloat16", "bfloat16"),), ("float32",), 80),
    (16, (("tfloat32", "tfloat32"),), ("float32",), 80),
    (64, tuple(product(INTEGERS, INTEGERS)), ("int32",), 80),
    (64, tuple(product(FP8, FP8)), ("float32",), 89),
)


def group(bits: int) -> tuple[int, int]:
    """(held elements, elements) of one group of a row, for elements of this width."""
    return (1, 2) if bits == 32 else (2, 4)


def metadata_elements(bits: int, width: int) -> int:
    """Elements of a row that one metadata element of `width` bits speaks of."""
    return width // FIELD_BITS * group(bits)[1]


@cache
def metadata_fragment(bits: int, width: int) -> Fragment:
    """The metadata of one instruction in elements of `width` bits, as a matrix of 16 rows; a lane's elements fill its
    register from the lowest bits up. LayoutError when an element holds fields of two lanes."""
    fields = width // FIELD_BITS
    rows = thread_mode(8, 4, 0, 1)
    if bits == 8:
        held = 8 // fields
        quad = (thread_mode(2, 1, 0, 8), thread_mode(2, 2, 1, held))
        return Fragment((M, 2 * held), (rows, *quad, reg_mode(held, 1, 1, 1)))
    if fields > 4:
        raise LayoutError(
            f"metadata of {width} bits for operands of {bits} bits", rule="one lane holds 16 bits of a row"
        )
    held = 4 // fields
    quad = (thread_mode(2, 1, 1, held), thread_mode(2, 2))
    return Fragment((M, 2 * held), (rows, *quad, reg_mode(held, 1, 1, 1), reg_mode(2, held, 0, 8)))


@cache
def metadata_rows_fragment() -> Fragment:
    """The elements of which a lane's metadata is a part, where one element of 32 bits speaks of a whole row of the
    instruction: those of row lane / 4 and of the row 8 below, as a matrix of 16 × 1. Of each the lane gives the half
    that lane % 2 numbers."""
    return Fragment((M, 1), (thread_mode(4, 1), thread_mode(8, 4, 0, 1), reg_mode(2, 1, 0, 8)))


def metadata_rows(bits: int, width: int) -> Fragment:
    """The elements that a lane reads for its metadata: those that make it, or those of which it is a half."""
    return metadata_rows_fragment() if width > 16 and bits > 8 else metadata_fragment(bits, width)


@cache
def mma_sp_atoms() -> tuple[Atom, ...]:
    """Every mma.sp row."""
    atoms = []
    for k, pairs, accumulators, min_sm in ROWS:
        for (a_dtype, b_dtype), c_dtype in product(pairs, accumulators):
            a_type, b_type, c_type = PTX_TYPE[a_dtype], PTX_TYPE[b_dtype], PTX_TYPE[c_dtype]
            shape = f"m{M}n{N}k{k}"
            name = f"mma.sp::ordered_metadata.sync.aligned.{shape}.row.col.{c_type}.{a_type}.{b_type}.{c_type}"
            bits = BITS[a_dtype]
            a, b, c = operand_fragment(M, k // 2, bits), operand_fragment(N, k, bits), accumulator_fragment(M)
            fields = metadata_fragment(bits, FIELD_BITS)
            atoms.append(Atom(name, "mma.sp", M, N, k, a_dtype, b_dtype, c_dtype, 32, a, b, c, min_sm, metadata=fields))
    return tuple(atoms)
