"""T.ptx_ldmatrix, T.ptx_mma and T.ptx_mma_sp: the matrix instructions of one warp, on arrays that its threads hold."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from ..errors import ShapeError
from ..ir.expr import Buffer, Const, Expr, as_expr
from ..ir.stmt import Region
from ..layout.atoms import Atom
from ..layout.mma import mma_atoms
from ..layout.mma_sp import mma_sp_atoms, selectors
from ..ops.gemm.sparse import METADATA
from ..ops.matrix_element import REGISTER_BITS, MatrixLoad, MatrixProduct
from .builder import require
from .faults import fault
from .pointers import Pointer

# The short names of instructions' types
TYPES = {
    "fp16": "float16", "bf16": "bfloat16", "tf32": "tfloat32", "fp32": "float32", "fp64": "float64", "e4m3":
    "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip


def ptx_ldmatrix(trans: Any, num: Any, src_ptr: Any, dst_ptr: Any) -> None:
    """Loads `num` (1, 2 or 4) matrices of eight rows of 16 bytes from shared memory: lane 8 j + i points to row i of
    matrix j (`src_ptr`), and gets 32 bits of each matrix in its array at `dst_ptr`."""
    builder = require("T.ptx_ldmatrix")
    for word, value, space in (("src_ptr", src_ptr, "shared"), ("dst_ptr", dst_ptr, "local")):
        if not isinstance(value, Pointer) or value.buffer.space not in (space, "fragment"):
            rule = f"it is T.access_ptr(...) of an element in {space} memory"
            raise fault(f"T.ptx_ldmatrix: {word} is no such pointer", rule, f"T.access_ptr({word[:3]}[i])")
    count, transposed = known(num, "num"), bool(known(trans, "trans"))
    if count not in (1, 2, 4):
        raise fault(f"T.ptx_ldmatrix: num={count}", "it moves 1, 2 or 4 matrices", "num=4")
    source, target = src_ptr.buffer, dst_ptr.buffer
    if source.dtype.bytes != target.dtype.bytes or source.dtype.bytes > 4:
        raise ShapeError(
            f"T.ptx_ldmatrix from {source.dtype} to {target.dtype}",
            rule="both hold elements of one width, of at most 32 bits",
            fix="give both the same dtype",
        )
    if transposed and source.dtype.bytes != 2:
        raise fault(f"T.ptx_ldmatrix: trans with {source.dtype}", "16-bit elements are transposed", "trans=False")
    to = Region(target, dst_ptr.indices, (*(1,) * (target.rank - 1), count * 4 // target.dtype.bytes), loc=builder.here)
    at = Region(source, src_ptr.indices, (1,) * source.rank, loc=builder.here)
    builder.emit(MatrixLoad(to, at, count, transposed, loc=builder.here))


def ptx_mma(
    dtype: Any, shape: str, A_layout: str, B_layout: str, A_dtype: str, B_dtype: str, C_dtype: str,
    multiplicand_a: Any, a_index: Any, multiplicand_b: Any, b_index: Any, accumulator: Any, c_index: Any,
    saturate: Any = False, operator: Any = None,
) -> None:  # fmt: skip
    """`accumulator[c_index:] += multiplicand_a[a_index:] · multiplicand_b[b_index:]` by one warp, with the instruction
    of `shape` ("m16n8k16") for the types (fp16, bf16, tf32, e4m3, int8, …). The arrays are each thread's own."""
    builder = require("T.ptx_mma")
    _plain("T.ptx_mma", A_layout, B_layout, saturate, operator)
    atom = instruction(str(shape), str(A_dtype), str(B_dtype), str(C_dtype))
    given = ((multiplicand_a, a_index), (multiplicand_b, b_index), (accumulator, c_index))
    a, b, c = operands("T.ptx_mma", atom, *given)
    builder.emit(MatrixProduct(atom, c, a, b, loc=builder.here))


def ptx_mma_sp(
    dtype: Any, shape: str, A_layout: str, B_layout: str, A_dtype: str, B_dtype: str, C_dtype: str,
    multiplicand_a: Any, a_index: Any, multiplicand_b: Any, b_index: Any, accumulator: Any, c_index: Any,
    metadata: Any, meta_index: Any, sparse_selector: Any, saturate: Any = False,
) -> None:  # fmt: skip
    """`accumulator[c_index:] += multiplicand_a[a_index:] · multiplicand_b[b_index:]` by one warp, where A holds half of
    the elements of each row ("m16n8k32" has 16): the 32 bits of each lane at `metadata[meta_index:]` say which.
    `sparse_selector` says which lanes of each four those are: the first, second … two (or one, of the shapes with the
    smaller K); 0 where all lanes give them. The arrays are each thread's own."""
    builder = require("T.ptx_mma_sp")
    _plain("T.ptx_mma_sp", A_layout, B_layout, saturate, None)
    atom = instruction(str(shape), str(A_dtype), str(B_dtype), str(C_dtype), sparse=True)
    given = ((multiplicand_a, a_index), (multiplicand_b, b_index), (accumulator, c_index))
    a, b, c = operands("T.ptx_mma_sp", atom, *given)
    meta = metadata_run(metadata, meta_index)
    builder.emit(MatrixProduct(atom, c, a, b, meta, selector_of(sparse_selector, atom), loc=builder.here))


def _plain(what: str, a_layout: Any, b_layout: Any, saturate: Any, operator: Any) -> None:
    if (a_layout, b_layout) != ("row", "col"):
        raise fault(f"{what}: layouts {a_layout}, {b_layout}", "A is row, B is col", 'use "row" and "col"')
    if bool(known(saturate, "saturate")) or operator is not None:
        raise fault(f"{what}: saturate or operator", "products are added as they are", "leave both out")


@cache
def instruction(shape: str, a: str, b: str, c: str, sparse: bool = False) -> Atom:
    """The row of a warp's matrix instruction; ShapeError when there is none."""
    found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", shape)
    wanted = tuple(TYPES.get(x, x) for x in (a, b, c))
    if sparse:  # float32 operands are read as tf32
        wanted = (*("tfloat32" if x == "float32" else x for x in wanted[:2]), wanted[2])
    rows = [x for x in (mma_sp_atoms() if sparse else mma_atoms()) if (x.a_dtype, x.b_dtype, x.c_dtype) == wanted]
    for row in rows:
        if found and row.shape == tuple(map(int, found.groups())):
            return row
    listed = ", ".join(f"m{x.m}n{x.n}k{x.k}" for x in rows) or "none"
    found_text = f"T.ptx_mma{'_sp' if sparse else ''} {shape} of {a} and {b} into {c}"
    raise ShapeError(found_text, rule=f"instructions for these types: {listed}", fix="use one of them")


def operands(what: str, atom: Atom, *given: tuple[Any, Any]) -> tuple[Region, ...]:
    """Where the registers of A, B and C are, each given as (array, first element); the array holds what the instruction
    takes, else ShapeError."""
    made, kinds, here = [], (atom.a_dtype, atom.b_dtype, atom.c_dtype), require(what).here
    for (buffer, index), fragment, kind, name in zip(given, atom.fragments(), kinds, "abc", strict=True):
        array = _array(buffer, f"{what}: operand {name}")
        if array.dtype.name != kind and (array.dtype.name, kind) != ("float32", "tfloat32"):
            raise ShapeError(
                f"{what}: operand {name}, `{array.name}`, is an array of {array.dtype}",
                rule=f"{atom.instruction} takes {kind}",
                fix=f'T.alloc_local((n,), "{"float32" if kind == "tfloat32" else kind}")',
            )
        made.append(Region(array, (as_expr(index),), (fragment.registers,), loc=here))
    return tuple(made)


def _array(given: Any, what: str) -> Buffer:
    if not isinstance(given, Buffer) or given.rank != 1:
        raise fault(f"{what} is no array of one dimension", "it is a T.alloc_local((n,))", "allocate it so")
    return given


def metadata_run(given: Any, index: Any) -> Region:
    """Where the 32 bits of a lane's metadata are; ShapeError for an array of anything but integers of 8 to 32 bits."""
    array = _array(given, "T.ptx_mma_sp: the metadata")
    if array.dtype.name not in METADATA:
        raise ShapeError(
            f"T.ptx_mma_sp: the metadata `{array.name}` is an array of {array.dtype}",
            rule=f"it is {', '.join(METADATA)}",
            fix='T.alloc_local((n,), "int32")',
        )
    here = require("T.ptx_mma_sp").here
    return Region(array, (as_expr(index),), (REGISTER_BITS // array.dtype.bits,), loc=here)


def selector_of(given: Any, atom: Atom, what: str = "T.ptx_mma_sp") -> int:
    """A sparsity selector that the instruction takes; LanguageError for any other."""
    value, fields = known(given, "sparse_selector"), atom.metadata
    count = 1 if fields is None else selectors(fields)
    if 0 <= value < count:
        return value
    lanes = {1: "all lanes give the metadata of", 2: "two lanes of each four give the metadata of",
             4: "one lane of each four gives the metadata of"}[count]  # fmt: skip
    raise fault(
        f"{what}: sparse_selector={value}",
        f"{lanes} m{atom.m}n{atom.n}k{atom.k} of {atom.a_dtype}: it is {', '.join(map(str, range(count)))}",
        "give the lanes that hold the metadata",
    )


def known(value: Any, name: str, what: str = "a matrix instruction") -> int:
    """A number that the kernel's text says; LanguageError for one that only the run tells."""
    if isinstance(value, Const):
        value = value.value
    if isinstance(value, Expr) or not hasattr(value, "__index__"):
        raise fault(f"`{name}` of {what} is known only at run time", "it is a constant", "use a Python value")
    return int(value.__index__())
