"""Device functions that a kernel brings as source text: the type names such text expects, and how it takes pointers."""

from __future__ import annotations

import re

from ..ir.dtype import DType
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

# Headers with the classes that CUDA has for types held as bits here.
_CLASSES = {
    "float16": ("cuda_fp16.h", "__half"), "bfloat16": ("cuda_bf16.h", "__nv_bfloat16"),
    "float8_e4m3fn": ("cuda_fp8.h", "__nv_fp8_e4m3"), "float8_e5m2": ("cuda_fp8.h", "__nv_fp8_e5m2"),
}  # fmt: skip


def brought(kernel: Kernel) -> str:
    """The texts that a kernel brings, one after the other; empty when it brings none."""
    texts = (*kernel.attrs.get("sources", ()), kernel.attrs.get("prelude") or "")
    return "\n".join(text for text in texts if text)


def type_names(text: str) -> tuple[str, ...]:
    """Definitions of the integer type names that `text` uses and does not define itself."""
    words = set(re.findall(r"\w+", text))
    return tuple(
        f"typedef {meaning} {name};" for name, meaning in _TYPES.items() if name in words and not _defines(text, name)
    )


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
