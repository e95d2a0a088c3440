"""T.create_tma_descriptor: what the copy engine is told of a tensor, its box and how the box lies in shared memory."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ..ir.expr import Binary, Buffer, Cast, Const, Expr, as_expr
from ..ir.stmt import Alloc
from ..ops.context import row_major_strides
from .builder import require
from .dtypes import as_dtype
from .faults import fault, shown
from .pointers import Pointer
from .views import reshape

WHAT = "T.create_tma_descriptor"
MOST_BOX, MOST_RANK, PITCH = 256, 5, 16
SWIZZLES, PROMOTIONS, FILLS = (0, 32, 64, 128), (0, 64, 128, 256), ("zero", "nan")  # by CUDA's numbers
# CUDA's numbers of the elements' types; bytes of every other kind are its uint8.
_NUMBERS = {
    "uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6, "float32": 7,
    "float64": 8, "bfloat16": 9, "int16": 1, "tfloat32": 11,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Descriptor:
    """A tensor, perhaps one that sees another's storage, and the box that a transfer moves, outermost dimension first.
    `swizzle` and `l2` in bytes."""

    tensor: Buffer
    box: tuple[int, ...]
    swizzle: int
    fill: str
    l2: int


def create_tma_descriptor(*args: Any) -> Descriptor:
    """`(data_type, rank, global_addr, global_shape…, global_stride…, smem_box…, smem_stride…, interleave, swizzle,
    l2_promotion, oob_fill)`, the four lists of `rank` numbers each, innermost dimension first: elements of the tensor,
    bytes of its strides, elements of the box, and 1. The other numbers, and that of the type, are those of CUDA's
    cuTensorMapEncodeTiled; the type may be named too. The tensor is a parameter, or a part of its storage."""
    require(WHAT)
    rank = _known(args[1], "rank") if len(args) > 1 else 0
    if not 1 <= rank <= MOST_RANK or len(args) != 7 + 4 * rank:
        raise fault(
            f"{WHAT} of {len(args)} arguments{f', rank {rank}' if len(args) > 1 else ''}",
            "it takes 7 arguments and four lists of rank numbers, for a rank of 1 to 5",
            "data_type, rank, global_addr, shape…, strides…, box…, 1…, interleave, swizzle, l2_promotion, oob_fill",
        )
    dims, pitches, box, steps = (args[3 + rank * n : 3 + rank * (n + 1)] for n in range(4))
    interleave, swizzle, promotion, outside = args[3 + 4 * rank :]
    if other := next((n for n in (*dims, *pitches) if not as_expr(n).dtype.is_int), None):
        raise fault(f"{WHAT}: a size is {shown(other)}", "extents and strides are whole numbers", "use ints")
    tensor = _tensor(args[2])
    _type(args[0], tensor)
    fill = FILLS[_among(outside, "oob_fill", len(FILLS))]
    if fill == "nan" and (not tensor.dtype.is_float or tensor.dtype.bits < 16):
        raise fault(f"{WHAT}: oob_fill={shown(outside)} of {tensor.dtype}", "1 means NaN, of floats", "oob_fill=0")
    span = SWIZZLES[_among(swizzle, "swizzle", len(SWIZZLES))]
    _among(interleave, "interleave", 1)
    if any(_known(step, "smem_stride") != 1 for step in steps):
        raise fault(f"{WHAT}: smem_stride={shown(tuple(steps))}", "a box takes every element", "give 1 for each")
    extents = tuple(_known(n, "smem_box") for n in reversed(box))
    _box(extents, span, tensor)
    l2 = PROMOTIONS[_among(promotion, "l2_promotion", len(PROMOTIONS))]
    return Descriptor(_described(tensor, dims[::-1], pitches[::-1]), extents, span, fill, l2)


def _known(value: Any, name: str) -> int:
    value = value.value if isinstance(value, Const) else value
    if isinstance(value, bool | Expr) or not hasattr(value, "__index__"):
        raise fault(f"{WHAT}: {name}={shown(value)}", "it is an int, known while compiling", "use a Python int")
    return int(value.__index__())


def _among(value: Any, name: str, count: int) -> int:
    number = _known(value, name)
    if not 0 <= number < count:
        rule = f"it is 0 … {count - 1} here" if count > 1 else "rows are not interleaved here: it is 0"
        raise fault(f"{WHAT}: {name}={number}", rule, f"{name}=0")
    return number


def _tensor(given: Any) -> Buffer:
    start = isinstance(given, Pointer) and all(isinstance(i, Const) and i.value == 0 for i in given.indices)
    buffer = given.buffer if isinstance(given, Pointer) and start else given
    if not isinstance(buffer, Buffer) or buffer.space != "global" or buffer.attr("address") is not None:
        raise fault(
            f"{WHAT}: global_addr is {shown(given.buffer if isinstance(given, Pointer) else given)}",
            "it is the start of a tensor that the kernel is given", "pass the tensor, begin elsewhere by coordinates",
        )  # fmt: skip
    return buffer


def _type(given: Any, tensor: Buffer) -> None:
    number = 0 if tensor.dtype.bits == 8 else _NUMBERS.get(tensor.dtype.name)
    named = given if isinstance(given, str) or not hasattr(given, "__index__") else None
    right = as_dtype(named) is tensor.dtype if named is not None and not isinstance(given, Expr) else None
    if number is None or (right is False) or (right is None and _known(given, "data_type") != number):
        raise fault(
            f"{WHAT}: data_type={shown(given)} for `{tensor.name}` of {tensor.dtype}",
            "it is the type of the tensor's elements" if number is not None else "the copy engine has no such type",
            f"data_type={number}" if number is not None else "T.view the tensor as bytes",
        )


def _box(box: tuple[int, ...], span: int, tensor: Buffer) -> None:
    inner = box[-1] * tensor.dtype.bytes
    if not all(1 <= n <= MOST_BOX for n in box) or inner % PITCH:
        raise fault(
            f"{WHAT}: smem_box={box[::-1]} of {tensor.dtype}",
            f"a box is 1 … {MOST_BOX} elements wide, inside a multiple of {PITCH} bytes", "take another box",
        )  # fmt: skip
    if span and inner != span:
        raise fault(
            f"{WHAT}: a box of {inner} bytes inside, swizzled by {span}",
            "rows of a swizzled box are as long as its pattern", f"{span // tensor.dtype.bytes} elements inside",
        )  # fmt: skip


def _described(tensor: Buffer, dims: tuple[Any, ...], pitches: tuple[Any, ...]) -> Buffer:
    """The tensor itself where the numbers say what it is, its storage under another shape, or a part of it."""
    shape = tuple(n.value if isinstance(n, Const) else n for n in dims)
    strides = tensor.strides or row_major_strides(tensor.shape)
    item = tensor.dtype.bytes
    if len(shape) == tensor.rank and all(map(_equal, shape, tensor.shape)) and _pitched(pitches, strides, item):
        return tensor
    dense = tensor.strides is None and _pitched(pitches, row_major_strides(shape), item)
    if dense and _equal(_product(shape), _product(tensor.shape)):
        return reshape(tensor, shape)
    return _part(tensor, shape, tuple(p.value if isinstance(p, Const) else p for p in pitches))


def _part(tensor: Buffer, shape: tuple[Any, ...], pitches: tuple[Any, ...]) -> Buffer:
    """Some of a tensor's storage, with strides of its own; all numbers are known, so that it is known to lie inside."""
    item, size = tensor.dtype.bytes, math.prod(tensor.shape) if tensor.static_size() else 0
    known = all(isinstance(n, int) for n in (*shape, *pitches)) and size > 0 and tensor.strides is None
    if not known:
        raise fault(
            f"{WHAT}: {shown(tuple(shape[::-1]))} elements at strides of {shown(tuple(pitches[::-1]))} bytes of "
            f"`{tensor.name}`, {shown(tuple(tensor.shape))}",
            "sizes of the call describe a tensor as it is, or its storage row by row under another shape",
            "give the tensor's own shape and strides",
        )
    whole = all(p >= 0 and p % (PITCH if n else item) == 0 for n, p in enumerate(pitches[::-1])) and pitches[-1] == item
    last = sum((n - 1) * p for n, p in zip(shape, pitches, strict=True)) + item
    if not whole or min(shape) < 1 or last > size * item:
        raise fault(
            f"{WHAT}: {shape[::-1]} elements at strides of {pitches[::-1]} bytes in {size * item} of `{tensor.name}`",
            f"rows start at multiples of {PITCH} bytes, elements follow one another, and all lie in the tensor",
            "describe the tensor's own shape and strides",
        )
    builder = require(WHAT)
    base = tensor.attr("view_of", tensor)
    steps = tuple(p // item for p in pitches)
    made = Buffer(
        builder.take_hint(tensor.name), shape, tensor.dtype, "global", steps, (("view_of", base),), loc=builder.here
    )
    builder.emit(Alloc(made, loc=builder.here))
    builder.define(made)
    return made


def _pitched(pitches: tuple[Any, ...], strides: tuple[Any, ...], item: int) -> bool:
    return all(_equal(p, _product((s, item))) for p, s in zip(pitches, strides, strict=True))


def _product(factors: tuple[Any, ...]) -> Expr:
    total = as_expr(1)
    for n in factors:
        total = Binary("mul", total, as_expr(n), dtype=total.dtype)
    return total


def _equal(a: Any, b: Any) -> bool:
    return _terms(as_expr(a)) == _terms(as_expr(b))


def _terms(e: Expr) -> Counter[tuple[int, ...]]:
    """A polynomial of symbols: by the symbols of a term, sorted, its factor. Anything else is a symbol of its own."""
    if isinstance(e, Const):
        return Counter({(): int(e.value)} if e.value else {})
    if isinstance(e, Cast) and e.dtype.is_int and e.a.dtype.is_int:
        return _terms(e.a)
    if isinstance(e, Binary) and e.op in ("add", "sub", "mul"):
        a, b = _terms(e.a), _terms(e.b)
        made: Counter[tuple[int, ...]] = Counter()
        if e.op == "mul":
            for p, m in a.items():
                for q, n in b.items():
                    made[tuple(sorted((*p, *q)))] += m * n
        else:
            made.update(a)
            made.update({p: n if e.op == "add" else -n for p, n in b.items()})
        return Counter({p: n for p, n in made.items() if n})
    return Counter({(id(e),): 1})
