"""Element types as the launcher knows them: size, how a scalar is packed, and what a TMA descriptor calls them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import InternalError, LaunchError


@dataclass(frozen=True)
class Element:
    """`bits` of one element; `code` is struct's letter for a scalar ("" where a kernel takes none); `tma` is the number
    of CUtensorMapDataType (-1: TMA does not know it)."""

    name: str
    kind: str  # "bool", "int", "uint" or "float"
    bits: int
    code: str
    tma: int

    @property
    def bytes(self) -> int:
        return self.bits // 8


_ROWS = (
    ("bool", "bool", 8, "?", 0),
    ("int8", "int", 8, "b", 0),
    ("int16", "int", 16, "h", 1),
    ("int32", "int", 32, "i", 3),
    ("int64", "int", 64, "q", 5),
    ("uint8", "uint", 8, "B", 0),
    ("uint16", "uint", 16, "H", 1),
    ("uint32", "uint", 32, "I", 2),
    ("uint64", "uint", 64, "Q", 4),
    ("float16", "float", 16, "e", 6),
    ("bfloat16", "float", 16, "bf16", 9),
    ("float32", "float", 32, "f", 7),
    ("tfloat32", "float", 32, "f", 11),
    ("float64", "float", 64, "d", 8),
    ("float8_e4m3fn", "float", 8, "", 0),
    ("float8_e5m2", "float", 8, "", 0),
    ("float8_e4m3fnuz", "float", 8, "", 0),
    ("float8_e5m2fnuz", "float", 8, "", 0),
    ("float8_e8m0fnu", "float", 8, "", 0),
    ("float4_e2m1fn", "float", 4, "", -1),
    ("int4", "int", 4, "", -1),
    ("uint4", "uint", 4, "", -1),
)
ELEMENTS = {row[0]: Element(*row) for row in _ROWS}
# What an array of packed elements may call itself, the name that outputs get in torch first.
CONTAINERS = {
    "float4_e2m1fn": ("float4_e2m1fn_x2", "uint8", "int8"),
    "int4": ("int8", "uint8"),
    "uint4": ("uint8", "int8"),
}
PER_BYTE = 2
_STORED_AS = {"tfloat32": ("float32",)}  # what an array of the type may call itself


def element(name: str) -> Element:
    """The row of an element type; InternalError for an unknown name."""
    if name not in ELEMENTS:
        raise InternalError(
            f"the launcher does not know the element type {name!r}", rule=f"one of {', '.join(ELEMENTS)}"
        )
    return ELEMENTS[name]


def is_packed(name: str) -> bool:
    """Elements of this type share bytes of a device's memory."""
    return element(name).bits < 8


def stored_shape(shape: Sequence[int], name: str) -> tuple[int, ...]:
    """The shape in bytes of packed elements; LaunchError for rows of an odd number."""
    if not shape or shape[-1] % PER_BYTE:
        raise LaunchError(
            f"a tensor of {name} of shape {tuple(shape)}", rule="two elements share a byte: rows hold an even number"
        )
    return (*shape[:-1], shape[-1] // PER_BYTE)


def accepts(wanted: str, found: str, library: str) -> bool:
    """Whether an array of `found` may be given for a parameter of `wanted`. CuPy has no fp8, so bytes stand for it."""
    if found == wanted or found in _STORED_AS.get(wanted, ()):
        return True
    return library == "cupy" and wanted.startswith("float8") and found == "uint8"


def packer(name: str) -> Callable[[object], int]:
    """A function from a Python or NumPy number to the little-endian bits of a scalar argument; LaunchError when the
    number is of another kind or does not fit."""
    kind = element(name)
    if not kind.code:
        raise InternalError(f"a kernel takes no scalar of type {name}")
    if kind.kind == "float":
        return _float_packer(kind)
    return _int_packer(kind)


def _int_packer(kind: Element) -> Callable[[object], int]:
    low = -(1 << (kind.bits - 1)) if kind.kind == "int" else 0
    high = 1 if kind.kind == "bool" else (1 << (kind.bits - (kind.kind == "int"))) - 1
    mask = (1 << kind.bits) - 1

    def pack(value: object) -> int:
        if type(value) is not int:
            value = _whole(value, kind.name)
        if not low <= value <= high:
            raise LaunchError(
                f"{value} does not fit {kind.name}",
                rule=f"{kind.name} holds {low} to {high}",
                fix="pass a value in that range",
            )
        return value & mask

    return pack


def _whole(value: object, name: str) -> int:
    try:
        return int(value.__index__())  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        if type(value).__name__ in ("bool", "bool_"):  # NumPy's has no __index__
            return int(bool(value))
        raise LaunchError(
            f"{value!r} of type {type(value).__name__} is no whole number", rule=f"it is {name}", fix="int(x)"
        ) from None


def _float_packer(kind: Element) -> Callable[[object], int]:
    bfloat = kind.code == "bf16"
    number = struct.Struct("<f" if bfloat else "<" + kind.code)
    bits = {16: struct.Struct("<H"), 32: struct.Struct("<I"), 64: struct.Struct("<Q")}[32 if bfloat else kind.bits]

    def pack(value: object) -> int:
        try:
            (found,) = bits.unpack(number.pack(value))
        except OverflowError:
            found = _infinity(kind, float(value))  # type: ignore[arg-type]
        except (struct.error, TypeError):
            raise LaunchError(
                f"{value!r} of type {type(value).__name__} is no number", rule=f"it is {kind.name}", fix="float(x)"
            ) from None
        return _to_bfloat(found) if bfloat else found

    return pack


def _infinity(kind: Element, value: float) -> int:
    """A number beyond the type's range rounds to infinity, as it does on the device."""
    exponent = {"e": 0x7C00, "f": 0x7F800000, "bf16": 0x7F800000}[kind.code]
    sign = {"e": 0x8000, "f": 0x80000000, "bf16": 0x80000000}[kind.code]
    return exponent | (sign if value < 0 else 0)


def _to_bfloat(bits: int) -> int:
    if bits & 0x7FFFFFFF > 0x7F800000:
        return bits >> 16 | 0x40  # a quiet NaN stays one
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
