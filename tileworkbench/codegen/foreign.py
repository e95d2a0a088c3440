"""Device functions that a kernel brings as source text: the type names such text expects, and how it takes pointers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import Loc
from ..ir.dtype import DType
from ..ir.instr import ForeignKernel
from ..ir.kernel import Kernel
from .scalar import SOFT, ctype

# What a file that nvcc or hipcc compiles finds in sys/types.h and stdint.h; a runtime compiler reads neither.
_TYPES = {
    "uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int", "ulong": "unsigned long",
    "int8_t": "signed char", "int16_t": "short", "int32_t": "int", "int64_t": "long long",
    "uint8_t": "unsigned char", "uint16_t": "unsigned short", "uint32_t": "unsigned int",
    "uint64_t": "unsigned long long", "intptr_t": "long long", "uintptr_t": "unsigned long long",
    "size_t": "decltype(sizeof(0))",
}  # fmt: skip

# Of limits.h, stdint.h, float.h and math.h.
_MACROS = {
    "INT8_MAX": "127", "INT16_MAX": "32767", "INT32_MAX": "2147483647", "INT64_MAX": "9223372036854775807LL",
    "INT8_MIN": "(-128)", "INT16_MIN": "(-32768)", "INT32_MIN": "(-2147483647 - 1)",
    "INT64_MIN": "(-9223372036854775807LL - 1)", "UINT8_MAX": "255", "UINT16_MAX": "65535", "UINT32_MAX": "4294967295U",
    "UINT64_MAX": "18446744073709551615ULL", "INT_MAX": "2147483647", "INT_MIN": "(-2147483647 - 1)",
    "UINT_MAX": "4294967295U", "LLONG_MAX": "9223372036854775807LL", "FLT_MAX": "3.402823466e+38F",
    "FLT_MIN": "1.175494351e-38F", "FLT_EPSILON": "1.192092896e-07F", "DBL_MAX": "1.7976931348623157e+308",
    "INFINITY": "__builtin_bit_cast(float, 0x7f800000)",
    "NAN": "__builtin_bit_cast(float, 0x7fc00000)", "M_PI": "3.14159265358979323846",
}  # fmt: skip

# Headers whose part in device code a runtime compiler brings itself, or `type_names` does.
_BUILT_IN = frozenset((
    "cuda_runtime.h", "cuda_runtime_api.h", "cuda.h", "device_launch_parameters.h", "vector_types.h", "stdint.h",
    "cstdint", "stddef.h", "cstddef", "stdio.h", "cstdio", "assert.h", "cassert", "limits.h", "climits", "float.h",
    "cfloat", "math.h", "cmath",
))  # fmt: skip
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)

# Headers with the classes that CUDA has for types held as bits here.
_CLASSES = {
    "float16": ("cuda_fp16.h", "__half"), "bfloat16": ("cuda_bf16.h", "__nv_bfloat16"),
    "float8_e4m3fn": ("cuda_fp8.h", "__nv_fp8_e4m3"), "float8_e5m2": ("cuda_fp8.h", "__nv_fp8_e5m2"),
}  # fmt: skip


def brought(kernel: Kernel) -> str:
    """The texts that a kernel brings, one after the other; empty when it brings none."""
    texts = (*kernel.attrs.get("sources", ()), kernel.attrs.get("prelude") or "")
    return "\n".join(text for text in texts if text)


def brought_lines(kernel: Kernel) -> Iterator[tuple[list[str], tuple[Loc | None, ...]]]:
    """The lines of each text that a kernel brings, and the user's places of them."""
    texts = (*kernel.attrs.get("sources", ()), kernel.attrs.get("prelude") or "")
    known = kernel.attrs.get("source_places", ())
    for text, start in zip(texts, (*known, *(None,) * (len(texts) - len(known))), strict=True):
        if text:
            yield text.split("\n"), line_places(text, start, kernel.loc)


def line_places(text: str, start: Loc | None, otherwise: Loc | None) -> tuple[Loc | None, ...]:
    """The places of a text's lines, of which the first is at `start`; `otherwise` for all where that is not known."""
    count = text.count("\n") + 1
    if start is None:
        return (otherwise,) * count
    return tuple(Loc(start.file, start.line + i) for i in range(count))


def macros(kernel: Kernel) -> tuple[str, ...]:
    """Lines that define what the user's flags do, for the texts that a kernel brings."""
    return tuple(kernel.attrs.get("macros", ()))


def kernel_text(kernel: Kernel, own: ForeignKernel) -> tuple[tuple[str, ...], tuple[Loc | None, ...], int]:
    """The lines of a kernel that is the user's text, their places, and how many of them come before that text."""
    names = (*macros(kernel), *type_names(own.source))
    lines = (*names, *own.source.split("\n"))
    return lines, (*(None,) * len(names), *line_places(own.source, own.place, own.loc)), len(names)


def headers(text: str) -> tuple[tuple[str, str], ...]:
    """The headers that `text` includes and that a runtime compiler has no file for: empty ones stand for them."""
    return tuple((name, "") for name in dict.fromkeys(_INCLUDE.findall(text)) if name in _BUILT_IN)


def type_names(text: str) -> tuple[str, ...]:
    """Definitions of the integer type names, limits and constants that `text` uses and does not define itself."""
    words = set(re.findall(r"\w+", text))
    used = [name for name in (*_TYPES, *_MACROS) if name in words and not _defines(text, name)]
    return tuple(f"typedef {_TYPES[n]} {n};" if n in _TYPES else f"#define {n} {_MACROS[n]}" for n in used)


def _defines(text: str, name: str) -> bool:
    own = rf"\btypedef\b[^;]*\b{name}\s*;|\busing\s+{name}\s*=|^[ \t]*#[ \t]*define[ \t]+{name}\b"
    return re.search(own, text, re.MULTILINE) is not None


def is_template(text: str, function: str) -> bool:
    """Whether `text` has a function template of that name: it deduces its types from what it is given."""
    name = re.compile(rf"\b{re.escape(function)}\s*\(")
    for start in re.finditer(r"\btemplate\s*<", text):
        head = re.match(r"[^{;]*", text[_closing(text, start.end()) :])
        if head is not None and name.search(head[0]):
            return True
    return False


def _closing(text: str, at: int) -> int:
    """The place behind the bracket that closes the one before `at`."""
    depth = 1
    while at < len(text) and depth:
        depth += {"<": 1, ">": -1}.get(text[at], 0)
        at += 1
    return at


def included_class(text: str, dtype: DType) -> str:
    """CUDA's own class for a type that is held as bits here, where `text` includes its header; else nothing."""
    header, own = _CLASSES.get(dtype.name, ("", ""))
    return own if header and re.search(rf"#[ \t]*include[ \t]*[<\"]{header}", text) else ""


def value_class(dtype: DType) -> tuple[str, str, tuple[str, ...]]:
    """A class of the size of the bits that converts as the numbers do, its text and the functions it calls: a template
    that computes with its elements must not compute with their bits."""
    kind = SOFT[dtype.name]
    name, take, give = f"tw_{kind}_value", f"tw_float_to_{kind}", f"tw_{kind}_to_float"
    text = (
        f"struct {name} {{ {ctype(dtype)} bits; {name}() = default; __device__ {name}(float x) : bits({take}(x)) {{}} "
        f"__device__ operator float() const {{ return {give}(bits); }} }};"
    )
    return name, text, (take, give)
