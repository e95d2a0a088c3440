"""T.ptx_ldmatrix and T.ptx_mma: the matrix instructions of one warp, on arrays that its threads hold."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from ..errors import ShapeError
from ..ir.expr import Buffer, Const, Expr, as_expr
from ..ir.stmt import Region
from ..layout.atoms import Atom
from ..layout.mma import mma_atoms
from ..ops.matrix_element import MatrixLoad, MatrixProduct
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
    count, transposed = _known(num, "num"), bool(_known(trans, "trans"))
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
    to = Region(target, dst_ptr.indices, (*(1,) * (target.rank - 1), count * 4 // target.dtype.bytes))
    at = Region(source, src_ptr.indices, (1,) * source.rank)
    builder.emit(MatrixLoad(to, at, count, transposed, loc=builder.here))


def ptx_mma(
    dtype: Any, shape: str, a_layout: str, b_layout: str, a_dtype: str, b_dtype: str, c_dtype: str,
    multiplicand_a: Any, a_index: Any, multiplicand_b: Any, b_index: Any, accumulator: Any, c_index: Any,
    saturate: Any = False, operator: Any = None,
) -> None:  # fmt: skip
    """`accumulator[c_index:] += multiplicand_a[a_index:] · multiplicand_b[b_index:]` by one warp, with the instruction
    of `shape` ("m16n8k16") for the types (fp16, bf16, tf32, e4m3, int8, …). The arrays are each thread's own."""
    builder = require("T.ptx_mma")
    if (a_layout, b_layout) != ("row", "col"):
        raise fault(f"T.ptx_mma: layouts {a_layout}, {b_layout}", "A is row, B is col", 'use "row" and "col"')
    if bool(_known(saturate, "saturate")) or operator is not None:
        raise fault("T.ptx_mma: saturate or operator", "products are added as they are", "leave both out")
    atom = instruction(str(shape), str(a_dtype), str(b_dtype), str(c_dtype))
    a, b, c = (
        _run(buffer, index, fragment.registers, name)
        for buffer, index, fragment, name in zip(
            (multiplicand_a, multiplicand_b, accumulator), (a_index, b_index, c_index), atom.fragments(), "abc",
            strict=True,
        )
    )  # fmt: skip
    builder.emit(MatrixProduct(atom, c, a, b, loc=builder.here))


@cache
def instruction(shape: str, a: str, b: str, c: str) -> Atom:
    """The row of a warp's matrix instruction; ShapeError when there is none."""
    found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", shape)
    wanted = tuple(TYPES.get(x, x) for x in (a, b, c))
    rows = [x for x in mma_atoms() if (x.a_dtype, x.b_dtype, x.c_dtype) == wanted]
    for row in rows:
        if found and row.shape == tuple(map(int, found.groups())):
            return row
    known = ", ".join(f"m{x.m}n{x.n}k{x.k}" for x in rows) or "none"
    found_text = f"T.ptx_mma {shape} of {a} and {b} into {c}"
    raise ShapeError(found_text, rule=f"instructions for these types: {known}", fix="use one of them")


def _run(given: Any, index: Any, count: int, name: str) -> Region:
    if not isinstance(given, Buffer) or given.rank != 1:
        raise fault(
            f"T.ptx_mma: operand {name} is no array of one dimension", "it is a T.alloc_local((n,))", "allocate it so"
        )
    return Region(given, (as_expr(index),), (count,))


def _known(value: Any, name: str) -> int:
    if isinstance(value, Const):
        value = value.value
    if isinstance(value, Expr) or not hasattr(value, "__index__"):
        raise fault(
            f"`{name}` of a matrix instruction is known only at run time", "it is a constant", "use a Python value"
        )
    return int(value.__index__())
