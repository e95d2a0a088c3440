"""Arrays that an eager kernel is called with, as its parameters see them."""

from __future__ import annotations

from typing import Any

from ..ir.dtype import DType, dtype

PER_BYTE = 2
PAIRS = ("uint8", "int8", "float4_e2m1fn_x2")  # what an array of packed elements may call itself


def entries(array: Any, kind: str, of: DType | None) -> tuple[Any, ...]:
    """Shape, or strides in elements, of an array that stands for a parameter of type `of`."""
    found = _stored(array, kind)
    if of is None or not of.is_packed or not found or _name(array) not in PAIRS:
        return found
    last = found[-1] * PER_BYTE if kind == "shape" or found[-1] != 1 else 1
    return (*(found[:-1] if kind == "shape" else (s * PER_BYTE for s in found[:-1])), last)


def _stored(array: Any, kind: str) -> tuple[Any, ...]:
    if kind == "shape":
        return tuple(array.shape)
    strides = array.stride() if callable(getattr(array, "stride", None)) else getattr(array, "strides", None)
    if strides is None:
        return _row_major(tuple(array.shape))
    # NumPy counts strides in bytes.
    size = getattr(array, "itemsize", None) if hasattr(array, "__array_interface__") else None
    return tuple(s // size for s in strides) if size else tuple(strides)


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    out: list[int] = []
    step = 1
    for extent in reversed(shape):
        out.append(step)
        step *= extent
    return tuple(reversed(out))


def _name(array: Any) -> str:
    return str(getattr(array, "dtype", "")).removeprefix("torch.")


def fits(array: Any, want: DType) -> bool:
    """Whether an array may stand for a parameter of dtype `want`: the same storage read another way."""
    if want.is_packed and _name(array) in PAIRS:
        return True
    have = dtype(array.dtype)
    if have is want:
        return True
    families = ({"tfloat32", "float32"}, {"bool", "uint8", "int8"})
    eight_bits = have.is_float and want.is_float and have.bits == want.bits == 8
    return eight_bits or any({have.name, want.name} <= names for names in families)
