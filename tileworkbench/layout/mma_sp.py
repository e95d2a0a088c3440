"""mma.sp rows: one warp, A half stored (2:4, for tf32 1:2), its metadata in one 32-bit register of a lane. Figures: PTX
ISA, "Matrix fragments for sparse mma.m*n*k*" and "Sparse matrix storage".

The held half of A lies like the dense A of half the K, B and C like those of the dense instruction. Metadata is made of
4-bit fields, one for each group of four elements of a row (two of tf32), the row's first group lowest. There are two
instructions of each type, one with half the K of the other.

With operands of 16 or 32 bits a row has 8 fields; two lanes of each quad give the metadata, each the 4 fields of its
half of K: bits 0 to 15 for row lane / 4, the other bits for the row 8 below. With operands of 8 bits a row has 16
fields and every lane gives 8 of one row: odd lanes those of the row 8 below, lanes 2 and 3 those of the second half.
Half of K has half of the fields, and half of the lanes give them. The sparsity selector says which lanes of a quad
those are: of four lanes in order, the first, second … quarter or half.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from tileworkbench.errors import LayoutError
from tileworkbench.layout.atoms import BITS, FIELD_BITS, Atom
from tileworkbench.layout.fragment import Fragment, reg_mode, thread_mode
from tileworkbench.layout.mma import FP8, INTEGERS, PTX_TYPE, accumulator_fragment, operand_fragment

M, N = 16, 8
# Extents of K, pairs of (A, B), accumulators, first compute capability
ROWS = (
    ((32, 16), (("float16", "float16"),), ("float16", "float32"), 80),
    ((32, 16), (("bfloat16", "bfloat16"),), ("float32",), 80),
    ((16, 8), (("tfloat32", "tfloat32"),), ("float32",), 80),
    ((64, 32), tuple(product(INTEGERS, INTEGERS)), ("int32",), 80),
    ((64,), tuple(product(FP8, FP8)), ("float32",), 89),
)
QUAD = 4  # lanes that hold the same rows of A
K_BITS = 256  # of half a row of the larger instruction, as if all elements were held


def group(bits: int) -> tuple[int, int]:
    """(held elements, elements) of one group of a row, for elements of this width."""
    return (1, 2) if bits == 32 else (2, 4)


def metadata_elements(bits: int, width: int) -> int:
    """Elements of a row that one metadata element of `width` bits speaks of."""
    return width // FIELD_BITS * group(bits)[1]


@cache
def metadata_fragment(bits: int, width: int, halves: int = 2) -> Fragment:
    """The metadata of one instruction in elements of `width` bits, as a matrix of 16 rows; a lane's elements fill its
    register from the lowest bits up. `halves` is 2 for the larger instruction, 1 for the one of half its K. Lanes that
    a selector chooses between hold the same. LayoutError when an element holds fields of two lanes."""
    fields = width // FIELD_BITS
    rows = thread_mode(8, 4, 0, 1)
    if bits == 8:
        held = 8 // fields
        lanes = (thread_mode(2, 1, 0, 8), thread_mode(halves, 2, 1, held), thread_mode(2 // halves, 2))
        return Fragment((M, halves * held), (rows, *lanes, reg_mode(held, 1, 1, 1)))
    if fields > 4:
        raise LayoutError(
            f"metadata of {width} bits for operands of {bits} bits", rule="one lane holds 16 bits of a row"
        )
    held = 4 // fields
    quad = (thread_mode(halves, 1, 1, held), thread_mode(QUAD // halves, halves))
    return Fragment((M, halves * held), (rows, *quad, reg_mode(held, 1, 1, 1), reg_mode(2, held, 0, 8)))


@cache
def metadata_rows_fragment() -> Fragment:
    """The elements of which a lane's metadata is a part, where one element of 32 bits speaks of a whole row of the
    instruction: those of row lane / 4 and of the row 8 below, as a matrix of 16 × 1. Of each the lane gives the half
    that lane % 2 numbers."""
    return Fragment((M, 1), (thread_mode(4, 1), thread_mode(8, 4, 0, 1), reg_mode(2, 1, 0, 8)))


def metadata_rows(bits: int, width: int) -> Fragment:
    """The elements that a lane reads for its metadata: those that make it, or those of which it is a half."""
    return metadata_rows_fragment() if width > 16 and bits > 8 else metadata_fragment(bits, width)


def selectors(metadata: Fragment) -> int:
    """How many values the sparsity selector of an instruction with this metadata may have, from 0 up."""
    return metadata.replication


def gives(metadata: Fragment, selector: int) -> np.ndarray:
    """Which of the 32 lanes give the metadata with this selector."""
    chosen: np.ndarray = np.arange(32) % QUAD // (QUAD // selectors(metadata)) == selector
    return chosen


@cache
def mma_sp_atoms() -> tuple[Atom, ...]:
    """Every mma.sp row."""
    atoms = []
    for extents, pairs, accumulators, min_sm in ROWS:
        for k, (a_dtype, b_dtype), c_dtype in product(extents, pairs, accumulators):
            a_type, b_type, c_type = PTX_TYPE[a_dtype], PTX_TYPE[b_dtype], PTX_TYPE[c_dtype]
            shape = f"m{M}n{N}k{k}"
            name = f"mma.sp::ordered_metadata.sync.aligned.{shape}.row.col.{c_type}.{a_type}.{b_type}.{c_type}"
            bits = BITS[a_dtype]
            a, b, c = operand_fragment(M, k // 2, bits), operand_fragment(N, k, bits), accumulator_fragment(M)
            fields = metadata_fragment(bits, FIELD_BITS, k * bits // K_BITS)
            atoms.append(Atom(name, "mma.sp", M, N, k, a_dtype, b_dtype, c_dtype, 32, a, b, c, min_sm, metadata=fields))
    return tuple(atoms)
