"""What the operands of a product must be: their memories and the dtypes that go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import LanguageError, ShapeError
from ...ir.dtype import DType

if TYPE_CHECKING:
    from .op import Gemm

# Operands of one dtype → accumulators. fp8 formats, and signed with unsigned bytes, mix freely.
FLOATS = {
    "float16": ("float32", "float16"),
    "bfloat16": ("float32",),
    "float32": ("float32",),
    "tfloat32": ("float32",),
    "float64": ("float64",),
}
PAIRINGS = (
    "float16·float16 → float32 or float16; bfloat16·bfloat16 → float32; float32·float32 → float32; "
    "float64·float64 → float64; fp8·fp8 → float32 or float16; int8 or uint8 · int8 or uint8 → int32 or float32; "
    "wider integers of one dtype → int32, float32 or wider"
)
PLACES = {"a": ("shared", "fragment"), "b": ("shared", "fragment"), "c": ("fragment",)}
WORDS = {"shared": "T.alloc_shared", "fragment": "T.alloc_fragment"}


def is_private(op: Gemm) -> bool:
    """Whether each thread multiplies arrays of its own."""
    return all(region.buffer.space == "local" for region in (op.a, op.b, op.c))


def check_memories(op: Gemm) -> None:
    """A and B are shared tiles or fragments, C is a fragment; or all are arrays of the one thread of a host's block,
    which `impls` refuses on a card."""
    if is_private(op):
        return
    for letter, spaces in PLACES.items():
        buffer = getattr(op, letter).buffer
        if buffer.space not in spaces:
            words = " or ".join(WORDS[space] for space in spaces)
            raise ShapeError(
                f"T.gemm: {letter.upper()} `{buffer.name}` is in {buffer.space} memory",
                rule="A and B are shared tiles or fragments, C is a fragment",
                fix=f"copy it to a tile made by {words}" if letter != "c" else f"accumulate in a tile made by {words}",
                loc=op.loc,
            )


def check_dtypes(op: Gemm) -> None:
    """The accumulator goes with the operands."""
    a, b, c = (region.buffer.dtype for region in (op.a, op.b, op.c))
    if not goes_together(a, b, c):
        raise ShapeError(
            f"T.gemm: {a}·{b} → {c}",
            rule=f"products are {PAIRINGS}",
            fix="copy the operands to tiles of one dtype, or change the accumulator's",
            loc=op.loc,
        )


def goes_together(a: DType, b: DType, c: DType) -> bool:
    """Whether there is a product of these operands into this accumulator."""
    if is_fp8(a) and is_fp8(b):
        return c.name in FLOATS["float16"]
    if a.is_int and b.is_int:
        return (a is b or a.bits == b.bits == 8) and c.bits >= 32 and (c.is_int or c.is_float)
    same = a is b or {a.name, b.name} == {"float32", "tfloat32"}
    return same and c.name in FLOATS.get(a.name, ())


def is_fp8(dtype: DType) -> bool:
    """Whether it is an eight-bit floating-point type."""
    return dtype.is_float and dtype.bits == 8


def check_packing(op: Gemm) -> None:
    """k_pack is how many steps along K one load of an AMD operand serves."""
    pack = dict(op.hints).get("k_pack", 1)
    if not (isinstance(pack, int) and pack in (1, 2)):
        raise LanguageError(f"T.gemm: k_pack={pack!r}", rule="k_pack is 1 or 2", fix="leave it out", loc=op.loc)
