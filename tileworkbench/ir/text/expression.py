"""Expressions and operands as Python text, with the parentheses that precedence needs and no others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..expr import (
    Binary,
    Bitcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Select,
    Special,
    Unary,
    Var,
    binary,
    same,
)
from ..instr import Addr, Bar, Desc, Reg
from ..node import Node
from ..region import is_whole
from ..stmt import Region, Stmt
from .names import Names

# Python's precedences, loosest first.
_OR, _AND, _NOT, _COMPARE, _BITOR, _XOR, _BITAND, _SHIFT, _SUM, _PRODUCT, _UNARY, _ATOM = range(1, 13)
_INFIX = {
    "add": ("+", _SUM),
    "sub": ("-", _SUM),
    "mul": ("*", _PRODUCT),
    "div": ("/", _PRODUCT),
    "floordiv": ("//", _PRODUCT),
    "floormod": ("%", _PRODUCT),
    "and": ("&", _BITAND),
    "or": ("|", _BITOR),
    "xor": ("^", _XOR),
    "shl": ("<<", _SHIFT),
    "shr": (">>", _SHIFT),
    "land": ("and", _AND),
    "lor": ("or", _OR),
}
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class ExprText:
    """Renders expressions and operands; one naming for all of a kernel."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def __call__(self, value: Any) -> str:
        """Any operand of a statement: an expression, a region, registers, a place in memory, a Python value."""
        return self.at(value, 0)

    def at(self, value: Any, outer: int) -> str:
        """The text of `value` where operators that bind looser than `outer` need parentheses."""
        rule = _RULES.get(type(value))
        return self.other(value) if rule is None else rule(self, value, outer)

    def items(self, values: Any) -> str:
        """Several operands with commas between them."""
        return ", ".join([self.at(v, 0) for v in values])

    def shape(self, extents: Any) -> str:
        """A Python tuple of extents."""
        return f"({self.items(extents)},)" if len(extents) == 1 else f"({self.items(extents)})"

    def other(self, value: Any) -> str:
        """Operands that are no part of this room: they may bring `text(show)`; nodes fall back to their fields."""
        text = getattr(value, "text", None)
        if callable(text):
            return str(text(self))
        if isinstance(value, Node) and not isinstance(value, (Stmt, Buffer)):
            fields = ", ".join(f"{f}={self.at(getattr(value, f), 0)}" for f in value._fields)
            return f"{type(value).__name__}({fields})"
        own: object = type(value).__repr__
        return str(value) if own is object.__repr__ else repr(value)

    def like(self, region: Any, other: Any) -> str:
        """A region as `T.copy` takes it: by its first element alone when the other operand, printed whole, has the
        same extents."""
        if type(region) is not Region or type(other) is not Region or is_whole(region) or not is_whole(other):
            return self.at(region, 0)
        if len(region.tile) != len(other.tile) or not all(map(same, region.tile, other.tile)):
            return self.at(region, 0)
        return f"{self.names(region.buffer)}[{self.items(region.starts)}]"

    def span(self, start: Expr, extent: Any) -> str:
        """One dimension of a region: an index, or a Python slice."""
        if type(extent) is int and extent == 1:
            return self.at(start, 0)
        first, last = self.at(start, 0), self.at(binary("add", start, extent), 0)
        return f"{first}:{last}" if " " not in first + last else f"{first} : {last}"


def _const(show: ExprText, e: Const, outer: int) -> str:
    value = e.value
    if type(value) is float and not math.isfinite(value):
        text = f'T.infinity("{e.dtype.name}")' if value == value else f'T.nan("{e.dtype.name}")'
        value = -1 if value < 0 else 1
        return _wrap(f"-{text}", _UNARY, outer) if value < 0 else text
    if type(value) is bool:
        return "True" if value else "False"
    return _wrap(repr(value), _UNARY, outer) if value < 0 else repr(value)


def _binary(show: ExprText, e: Binary, outer: int) -> str:
    found = _INFIX.get(e.op)
    if found is None:
        return f"T.{e.op}({show.at(e.a, 0)}, {show.at(e.b, 0)})"
    sign, level = found
    text = f"{show.at(e.a, level)} {sign} {show.at(e.b, level + 1)}"
    return f"({text})" if level < outer else text


def _compare(show: ExprText, e: Compare, outer: int) -> str:
    text = f"{show.at(e.a, _COMPARE + 1)} {_SIGNS[e.op]} {show.at(e.b, _COMPARE + 1)}"
    return f"({text})" if outer > _COMPARE else text


def _unary(show: ExprText, e: Unary, outer: int) -> str:
    if e.op == "abs":
        return f"T.abs({show.at(e.a, 0)})"
    if e.op == "lnot":
        return _wrap(f"not {show.at(e.a, _NOT)}", _NOT, outer)
    return _wrap(f"{'-' if e.op == 'neg' else '~'}{show.at(e.a, _UNARY)}", _UNARY, outer)


def _load(show: ExprText, e: Load, outer: int) -> str:
    return element(show, e.buffer, e.indices)


def element(show: ExprText, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
    """One element of a buffer; a scalar variable is its name."""
    if not indices or (buffer.space == "var" and all(type(i) is Const and i.value == 0 for i in indices)):
        return show.names(buffer)
    return f"{show.names(buffer)}[{show.items(indices)}]"


def _region(show: ExprText, r: Region, outer: int) -> str:
    if is_whole(r):
        return show.names(r.buffer)
    if len(r.starts) != len(r.extents):  # malformed: shown as it is, for the error that says so
        return f"{show.names(r.buffer)}[starts={show.shape(r.starts)}, extents={show.shape(r.extents)}]"
    parts = [show.span(s, e) for s, e in zip(r.starts, r.extents, strict=True)]
    return f"{show.names(r.buffer)}[{', '.join(parts)}]"


def _reg(show: ExprText, r: Reg, outer: int) -> str:
    return f"{show.names(r.buffer)}[{show.span(r.start, r.count)}]"


def _addr(show: ExprText, a: Addr, outer: int) -> str:
    if type(a.offset) is Const and a.offset.value == 0:
        return show.names(a.buffer)
    return _wrap(f"{show.names(a.buffer)} + {show.at(a.offset, _SUM)}", _SUM, outer)


def _bar(show: ExprText, b: Bar, outer: int) -> str:
    return f"{show.names(b.buffer)}[{show.at(b.index, 0)}]"


def _desc(show: ExprText, d: Desc, outer: int) -> str:
    place = f"{show.at(d.addr, 0)}, swizzle={d.swizzle}, leading={d.leading}, stride={d.stride}"
    return f"desc({place}, major={_text(d.major)})"


def _tuple(show: ExprText, t: tuple[Any, ...], outer: int) -> str:
    return show.shape(t)


def _text(value: str) -> str:
    """A string with double quotes, as users write them."""
    plain = repr(value)
    return f'"{plain[1:-1]}"' if plain[0] == "'" and '"' not in value else plain


def _wrap(text: str, level: int, outer: int) -> str:
    return f"({text})" if level < outer else text


_RULES: dict[type, Callable[[ExprText, Any, int], str]] = {
    Const: _const,
    Var: lambda show, e, outer: show.names(e),
    Special: lambda show, e, outer: e.name,
    Binary: _binary,
    Compare: _compare,
    Unary: _unary,
    Select: lambda show, e, outer: f"T.if_then_else({show.items((e.cond, e.a, e.b))})",
    Cast: lambda show, e, outer: (
        f'T.cast({show.at(e.a, 0)}, "{e.dtype.name}"{"" if e.saturate is e.dtype.is_fp8 else f", sat={e.saturate}"})'
    ),
    Bitcast: lambda show, e, outer: f'T.reinterpret({show.at(e.a, 0)}, "{e.dtype.name}")',
    Call: lambda show, e, outer: f"T.{e.fn}({show.items(e.args)})",
    Load: _load,
    Buffer: lambda show, b, outer: show.names(b),
    Region: _region,
    Reg: _reg,
    Addr: _addr,
    Bar: _bar,
    Desc: _desc,
    tuple: _tuple,
    str: lambda show, s, outer: _text(s),
    int: lambda show, v, outer: _wrap(repr(v), _UNARY, outer) if v < 0 else repr(v),
    bool: lambda show, v, outer: repr(v),
    float: lambda show, v, outer: repr(v),
}
