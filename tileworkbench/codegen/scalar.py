"""How scalar types stand in C text. Floats of at most 16 bits are held as their bits and computed through float: a
float has more than twice their digits, so rounding the float result is rounding the exact one."""

from __future__ import annotations

from ..errors import InternalError
from ..ir.dtype import DType

CTYPE = {
    "bool": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned", "uint64": "unsigned long long",
    "float16": "unsigned short", "bfloat16": "unsigned short", "float32": "float", "tfloat32": "float",
    "float64": "double", "float8_e4m3fn": "unsigned char", "float8_e5m2": "unsigned char",
    "float8_e4m3fnuz": "unsigned char", "float8_e5m2fnuz": "unsigned char", "float8_e8m0fnu": "unsigned char",
    "float4_e2m1fn": "unsigned char", "int4": "signed char", "uint4": "unsigned char", "handle": "unsigned long long",
}  # fmt: skip

# Types held as bits, and how the conversion functions call them: tw_half_to_float, tw_float_to_half, …
SOFT = {
    "float16": "half", "bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
    "float8_e4m3fnuz": "e4m3fnuz", "float8_e5m2fnuz": "e5m2fnuz", "float8_e8m0fnu": "e8m0",
    "float4_e2m1fn": "e2m1",
}  # fmt: skip
# Types whose sign is one bit that may be flipped (the FNUZ encodings have a NaN where negative zero would be).
SIGN_BIT = {"float16": 0x8000, "bfloat16": 0x8000, "float8_e4m3fn": 0x80, "float8_e5m2": 0x80}
PIECES = (1, 2, 4, 8, 16, 32)  # bytes of one access


def ctype(dtype: DType) -> str:
    return CTYPE[dtype.name]


def is_soft(dtype: DType) -> bool:
    return dtype.name in SOFT


def piece(count: int, dtype: DType, widest: int = 16) -> int:
    """Bytes of one access to `count` elements; an access of another size is an InternalError."""
    size = count * dtype.bytes
    if size not in PIECES or size > widest:
        raise InternalError(f"one access of {size} bytes", rule=f"an access has 1, 2, 4, 8 … {widest} bytes")
    return size
