"""Data types: one frozen row a type, with its NumPy container."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import ShapeError


@dataclass(frozen=True, slots=True)
class DType:
    """A scalar type. `kind` is int, uint, float, bool or handle; `bits` the storage width of one element. It equals its
    own name and its other names, as kernels' helper functions compare them."""

    name: str
    kind: str
    bits: int
    is_float: bool = field(init=False, repr=False, compare=False)
    is_int: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_float", self.kind == "float")
        object.__setattr__(self, "is_int", self.kind in ("int", "uint"))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            name = other.removeprefix("torch.")
            return _ALIASES.get(name, name) == self.name
        return self is other or (isinstance(other, DType) and other.name == self.name) or NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def bytes(self) -> int:
        """Storage bytes of one element in registers and shared memory. Types narrower than a byte take a whole one
        there; only in global memory of a device are they packed."""
        return max(1, self.bits // 8)

    @property
    def is_packed(self) -> bool:
        """Several elements share a byte of a device's global memory, the first in its lowest bits."""
        return self.bits < 8

    @property
    def is_fp8(self) -> bool:
        """A float of 8 bits with a sign. Conversions clamp to its range unless asked otherwise, infinities too."""
        return self.is_float and self.bits == 8 and self.name != "float8_e8m0fnu"

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype that holds one element (ml_dtypes for bf16, fp8 and what is narrower than a byte)."""
        return _NUMPY[self.name]

    def min_value(self) -> int | float:
        """The least finite value."""
        if self.kind == "bool":
            return 0
        return int(ml_dtypes.iinfo(self.numpy).min) if self.is_int else float(ml_dtypes.finfo(self.numpy).min)

    def max_value(self) -> int | float:
        """The greatest finite value."""
        if self.kind == "bool":
            return 1
        return int(ml_dtypes.iinfo(self.numpy).max) if self.is_int else float(ml_dtypes.finfo(self.numpy).max)

    def __str__(self) -> str:
        return self.name


_ROWS: tuple[tuple[str, str, int, Any], ...] = (
    ("bool", "bool", 8, np.bool_),
    ("int8", "int", 8, np.int8),
    ("int16", "int", 16, np.int16),
    ("int32", "int", 32, np.int32),
    ("int64", "int", 64, np.int64),
    ("uint8", "uint", 8, np.uint8),
    ("uint16", "uint", 16, np.uint16),
    ("uint32", "uint", 32, np.uint32),
    ("uint64", "uint", 64, np.uint64),
    ("float16", "float", 16, np.float16),
    ("bfloat16", "float", 16, ml_dtypes.bfloat16),
    ("float32", "float", 32, np.float32),
    ("tfloat32", "float", 32, np.float32),
    ("float64", "float", 64, np.float64),
    ("float8_e4m3fn", "float", 8, ml_dtypes.float8_e4m3fn),
    ("float8_e5m2", "float", 8, ml_dtypes.float8_e5m2),
    ("float8_e4m3fnuz", "float", 8, ml_dtypes.float8_e4m3fnuz),
    ("float8_e5m2fnuz", "float", 8, ml_dtypes.float8_e5m2fnuz),
    ("float8_e8m0fnu", "float", 8, ml_dtypes.float8_e8m0fnu),
    ("float4_e2m1fn", "float", 4, ml_dtypes.float4_e2m1fn),
    ("int4", "int", 4, ml_dtypes.int4),
    ("uint4", "uint", 4, ml_dtypes.uint4),
    ("handle", "handle", 64, np.uint64),
)
_NUMPY: dict[str, np.dtype] = {name: np.dtype(container) for name, _, _, container in _ROWS}
DTYPES: dict[str, DType] = {name: DType(name, kind, bits) for name, kind, bits, _ in _ROWS}
_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "float8_e4m3": "float8_e4m3fn",
    "e4m3fn": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "boolean": "bool",
}
_PYTHON = {int: "int32", float: "float32", bool: "bool"}

BOOL, INT32, INT64 = DTYPES["bool"], DTYPES["int32"], DTYPES["int64"]
UINT32, UINT64 = DTYPES["uint32"], DTYPES["uint64"]
FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = DTYPES["float16"], DTYPES["bfloat16"], DTYPES["float32"], DTYPES["float64"]


def dtype(value: Any) -> DType:
    """The DType that `value` names: a DType, a string, a NumPy or torch dtype, or Python's int, float, bool."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        name = value.removeprefix("torch.")
    elif value in _PYTHON:
        name = _PYTHON[value]
    elif hasattr(value, "__dtype__"):  # a language-level dtype object
        return dtype(value.__dtype__)
    elif value is None:  # NumPy takes it for float64
        name = "None"
    else:
        text = str(value)
        name = text.removeprefix("torch.") if text.startswith("torch.") else _numpy_name(value)
    name = _ALIASES.get(name, name)
    if name not in DTYPES:
        close = difflib.get_close_matches(name, DTYPES, n=1)
        raise ShapeError(
            f"{value!r} is not a data type",
            rule=f"data types are {', '.join(DTYPES)}",
            fix=f"did you mean `{close[0]}`?" if close else "use one of these names",
        )
    return DTYPES[name]


def _numpy_name(value: Any) -> str:
    try:
        return str(np.dtype(value).name)
    except TypeError:
        return str(value)
