"""Conversions between scalar types as C text: nearest-even, float to integer truncates."""

from __future__ import annotations

from typing import Protocol

from ..ir.dtype import DType
from .scalar import SOFT, ctype, is_soft

# Overflow without saturation is what the encoding says: infinity or NaN. The FNUZ encodings have only NaN.


class User(Protocol):
    """Who notes the functions that text calls."""

    def use(self, name: str) -> str: ...


def convert(p: User, text: str, a: DType, to: DType, saturate: bool = False) -> str:
    """C text of the value `text` of type `a` as type `to`. `text` binds at least as tightly as a function argument."""
    if a is to or {a.name, to.name} == {"float32", "tfloat32"}:
        return text
    if is_soft(to):
        return _to_soft(p, text, a, to, saturate)
    if is_soft(a):
        wide = f"{p.use(f'tw_{SOFT[a.name]}_to_float')}({text})"
        return wide if to.name in ("float32", "tfloat32") else _plain(p, wide, to, saturate)
    return _plain(p, text, to, saturate)


def _to_soft(p: User, text: str, a: DType, to: DType, saturate: bool) -> str:
    if to.name == "float16" and a.name == "float64":
        return f"{p.use('tw_double_to_half')}({text})"
    if is_soft(a):
        text = f"{p.use(f'tw_{SOFT[a.name]}_to_float')}({text})"
    elif a.name == "float64" and to.bits <= 8:  # rounding twice would differ; round to odd in between does not
        text = f"{p.use('tw_double_to_odd_float')}({text})"
    elif a.name not in ("float32", "tfloat32"):
        text = f"(float)({text})"
    tail = "_sat" if saturate and to.is_fp8 else ""
    return f"{p.use(f'tw_float_to_{SOFT[to.name]}{tail}')}({text})"


def _plain(p: User, text: str, to: DType, saturate: bool) -> str:
    if to.kind == "bool":
        return f"(({text}) != 0)"
    if saturate and to.is_int:
        return (
            f"{p.use('tw_saturate')}<{ctype(to)}>({text}, {_limit(to, to.min_value())}, {_limit(to, to.max_value())})"
        )
    if to.is_packed:
        return f"{p.use(f'tw_to_{to.name}')}((int)({text}))"
    return f"({ctype(to)})({text})" if not text.replace("_", "").isalnum() else f"({ctype(to)}){text}"


def _limit(to: DType, value: int | float) -> str:
    tail = {"uint32": "u", "uint64": "ull", "int64": "ll"}.get(to.name, "")
    return f"{value}{tail}" if value >= 0 else f"(-{-int(value) - 1}{tail} - 1)"
