"""wgmma rows: one warpgroup, B (and usually A) from shared memory by descriptor, D in registers. Figures: PTX ISA,
"Matrix fragments for wgmma.mma_async.m64nNk*": warp w of the group owns rows 16 w … 16 w + 15, laid out as mma.sync."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

from tileworkbench.errors import LayoutError
from tileworkbench.layout.atoms import BITS, FIELD_BITS, Atom
from tileworkbench.layout.fragment import Fragment
from tileworkbench.layout.mma import FP8, INTEGERS, PTX_TYPE, accumulator_fragment, operand_fragment
from tileworkbench.layout.mma_sp import metadata_rows
from tileworkbench.layout.transform import repeat

# pairs of (A, B) and the accumulators they allow; K is always 32 bytes
ROWS = (
    ((("float16", "float16"),), ("float16", "float32")),
    ((("bfloat16", "bfloat16"),), ("float32",)),
    ((("tfloat32", "tfloat32"),), ("float32",)),
    (tuple(product(FP8, FP8)), ("float16", "float32")),
    (tuple(product(INTEGERS, INTEGERS)), ("int32",)),
)
K_BYTES = 32
ARCHS = ("sm_90a",)


def wgmma_n(dtype: str) -> tuple[int, ...]:
    """Legal N: multiples of 8 up to 256; integers above 32 only by 16."""
    return tuple(n for n in range(8, 257, 8) if dtype not in INTEGERS or n <= 32 or n % 16 == 0)


@cache
def wgmma_accumulator_fragment(n: int) -> Fragment:
    """D (64, n) of one warpgroup."""
    return repeat(repeat(accumulator_fragment(16), 0, 4, "thread"), 1, n // 8)


@cache
def wgmma_a_fragment(dtype: str) -> Fragment:
    """A (64, K) from registers of one warpgroup."""
    return repeat(operand_fragment(16, K_BYTES * 8 // BITS[dtype], BITS[dtype]), 0, 4, "thread")


def wgmma_takes(a_dtype: str, b_dtype: str, c_dtype: str) -> bool:
    """Whether there is a row for operands and accumulator of these dtypes."""
    return any((a_dtype, b_dtype) in pairs and c_dtype in accumulators for pairs, accumulators in ROWS)


@cache
def wgmma_atom(n: int, a_dtype: str, b_dtype: str, c_dtype: str) -> Atom:
    """The row for one N; LayoutError when no instruction has these dtypes or this N."""
    if not wgmma_takes(a_dtype, b_dtype, c_dtype):
        raise LayoutError(f"wgmma of {a_dtype} and {b_dtype} into {c_dtype}", rule="no such instruction")
    if n not in wgmma_n(a_dtype):
        raise LayoutError(f"wgmma with N = {n}", rule="N is a multiple of 8 (integers above 32: of 16) up to 256")
    k = K_BYTES * 8 // BITS[a_dtype]
    name = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{PTX_TYPE[c_dtype]}.{PTX_TYPE[a_dtype]}.{PTX_TYPE[b_dtype]}"
    a, c = wgmma_a_fragment(a_dtype), wgmma_accumulator_fragment(n)
    return Atom(name, "wgmma", 64, n, k, a_dtype, b_dtype, c_dtype, 128, a, None, c, archs=ARCHS)


@cache
def wgmma_sp_atom(n: int, a_dtype: str, b_dtype: str, c_dtype: str) -> Atom:
    """The row with a sparse A: twice the K, of which A holds half; warp w's lanes give the metadata of its 16 rows as
    those of mma.sp do. LayoutError as for the dense row."""
    dense = wgmma_atom(n, a_dtype, b_dtype, c_dtype)
    name = dense.instruction.replace("mma_async.", "mma_async.sp.").replace(f"k{dense.k}.", f"k{2 * dense.k}.")
    fields = wgmma_metadata_fragment(BITS[a_dtype], FIELD_BITS)
    return replace(dense, instruction=name, family="wgmma.sp", k=2 * dense.k, metadata=fields)


@cache
def wgmma_metadata_fragment(bits: int, width: int) -> Fragment:
    """The metadata of 64 rows in elements of `width` bits."""
    return repeat(metadata_rows(bits, width), 0, 4, "thread")


@cache
def wgmma_atoms(a_dtype: str, b_dtype: str, c_dtype: str) -> tuple[Atom, ...]:
    """The rows of these dtypes, one for each N; empty when wgmma does not take them."""
    if not wgmma_takes(a_dtype, b_dtype, c_dtype):
        return ()
    return tuple(wgmma_atom(n, a_dtype, b_dtype, c_dtype) for n in wgmma_n(a_dtype))
