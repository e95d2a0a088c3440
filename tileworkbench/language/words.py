"""Vectors of raw bits: elements seen as 32-bit words, and words seen as elements of another type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ShapeError
from ..ir.dtype import DTYPES, DType
from ..ir.expr import Bitcast, Expr, as_expr, binary, cast
from .dtypes import as_dtype, vector_type
from .lanes import Lanes
from .mathfns import scalar

WORD = DTYPES["uint32"]


class Words(Lanes):
    """32-bit words of `parts`, the elements that they were read as: taken apart only where somebody wants words."""

    def __init__(self, parts: Sequence[Expr]) -> None:
        self.parts = tuple(parts)
        super().__init__(to_words(self.parts))

    def mapped(self, change: Callable[[Expr], Expr]) -> Words:
        return Words([change(part) for part in self.parts])


def unsigned(bits: int) -> DType:
    return DTYPES[f"uint{bits}"]


def bitcast(e: Expr, of: DType) -> Expr:
    """The same bits as another type of that width."""
    return e if e.dtype is of else Bitcast(e, dtype=of)


def to_words(parts: Sequence[Expr]) -> list[Expr]:
    """The elements' bits as 32-bit words, the first element lowest."""
    bits = parts[0].dtype.bits
    raw = [bitcast(p, unsigned(bits)) for p in parts]
    if bits == 64:
        return [cast(half, WORD) for x in raw for half in (x, binary("shr", x, as_expr(32, x.dtype)))]
    each = max(1, 32 // bits)
    return [_joined(raw[i : i + each], bits, WORD) for i in range(0, len(raw), each)]


def _joined(raw: Sequence[Expr], bits: int, of: DType) -> Expr:
    word = cast(raw[0], of)
    for n, x in enumerate(raw[1:], 1):
        word = binary("or", word, binary("shl", cast(x, of), as_expr(n * bits, of)))
    return word


def from_words(words: Sequence[Expr], of: DType) -> list[Expr]:
    """Words as elements of a type, the lowest bits first."""
    if of.bits == 64:
        pairs = zip(words[::2], words[1::2], strict=True)
        return [bitcast(_joined(pair, 32, unsigned(64)), of) for pair in pairs]
    count = 32 // of.bits
    return [bitcast(cast(_shifted(w, n * of.bits), unsigned(of.bits)), of) for w in words for n in range(count)]


def _shifted(word: Expr, by: int) -> Expr:
    return binary("shr", word, as_expr(by, WORD)) if by else word


def elements(value: Any, of: DType) -> list[Expr]:
    """The bits of a number or vector as elements of `of`."""
    parts = list(value.parts if isinstance(value, Words) else value if isinstance(value, Lanes) else (value,))
    if parts[0].dtype.bits == of.bits:
        return [bitcast(p, of) for p in parts]
    return from_words(to_words(parts), of)


def width(value: Any) -> int:
    """Bits of a number or vector."""
    return sum(lane.dtype.bits for lane in value) if isinstance(value, Lanes) else int(value.dtype.bits)


def reinterpret(value: Any, dtype: Any) -> Any:
    """The same bits as another type of the same width: a number, or a vector of a type such as "float32x2"."""
    if isinstance(value, str) or hasattr(value, "__dtype__"):
        value, dtype = dtype, value  # the older order
    vector = vector_type(dtype)
    of = as_dtype(vector.element if vector is not None else dtype)
    given = value if isinstance(value, Lanes) else scalar(value, "T.reinterpret")
    bits = of.bits * (vector.lanes if vector is not None else 1)
    if width(given) != bits or of.is_packed:
        many = f"{len(given)} lanes of {given.dtype}" if isinstance(given, Lanes) else str(given.dtype)
        raise ShapeError(
            f"T.reinterpret of {many} as {vector or of}",
            rule="both types have the same width, of at least a byte",
            fix="use T.cast",
        )
    if vector is None and not isinstance(given, Lanes):
        return bitcast(given, of)
    made = elements(given, of)
    return Lanes(made[: vector.lanes]) if vector is not None else made[0]
