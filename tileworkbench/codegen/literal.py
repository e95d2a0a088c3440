"""Constants as exact C text."""

from __future__ import annotations

import math
import struct

import numpy as np

from ..ir.dtype import DType
from ..ir.expr import Const

_SUFFIX = {"int64": "ll", "uint32": "u", "uint64": "ull"}


def bits_of(value: float, dtype: DType) -> int:
    """The storage bits of a float of at most 16 bits."""
    data = np.array([value]).astype(dtype.numpy)
    return int(data.view(np.uint8 if dtype.bits <= 8 else np.uint16)[0])


def literal(c: Const) -> str:
    """C text with exactly the value of `c`. Floats of at most 16 bits are their storage bits; infinities and NaNs of
    wider floats are written by their bits too, with a function of the dialect."""
    if c.dtype.kind == "bool":
        return "true" if c.value else "false"
    if not c.dtype.is_float:
        return _integer(int(c.value), c.dtype)
    value = float(c.value)
    if c.dtype.bits <= 16:
        return f"{bits_of(value, c.dtype):#0{2 + c.dtype.bits // 4}x} /* {value:g} */"
    if c.dtype.bits == 32:
        return _float32(value)
    return _float64(value)


def _integer(value: int, dtype: DType) -> str:
    suffix = _SUFFIX.get(dtype.name, "")
    if dtype.kind == "int" and value == -(2 ** (max(dtype.bits, 32) - 1)):
        return f"(-{-value - 1}{suffix} - 1)"
    return f"{value}{suffix}"


def _float32(value: float) -> str:
    if not math.isfinite(value):
        return f"tw_float_of_bits({'0x7fc00000u' if value != value else hex(_bits32(value)) + 'u'})"
    return _dotted(str(np.float32(value))) + "f"


def _float64(value: float) -> str:
    if not math.isfinite(value):
        bits = 0x7FF8 << 48 if value != value else struct.unpack("<Q", struct.pack("<d", value))[0]
        return f"tw_double_of_bits({bits:#x}ull)"
    return _dotted(repr(value))


def _bits32(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def _dotted(text: str) -> str:
    return text if "." in text or "e" in text else text + ".0"
