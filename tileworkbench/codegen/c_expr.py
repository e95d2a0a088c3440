"""Expressions as C text with as few parentheses as its precedences allow. Dialects differ in the functions called."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ..errors import InternalError
from ..ir.arith import Facts
from ..ir.dtype import DTYPES, FLOAT32, DType
from ..ir.expr import Binary, Bitcast, Buffer, Call, Cast, Compare, Const, Expr, Load, Select, Special, Unary, Var
from .convert import convert
from .literal import literal
from .scalar import SIGN_BIT, SOFT, ctype, is_soft

PRIMARY, UNARY, COND = 16, 14, 3
_LEVEL = {"mul": 13, "div": 13, "truncdiv": 13, "truncmod": 13, "add": 12, "sub": 12, "shl": 11, "shr": 11,
          "lt": 10, "le": 10, "gt": 10, "ge": 10, "eq": 9, "ne": 9, "and": 8, "xor": 7,
          "or": 6, "land": 5, "lor": 4}  # fmt: skip
_SIGN = {"mul": "*", "div": "/", "truncdiv": "/", "truncmod": "%", "add": "+", "sub": "-", "shl": "<<", "shr": ">>",
         "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "&", "xor": "^", "or": "|",
         "land": "&&", "lor": "||"}  # fmt: skip
_BITWISE = frozenset({"and", "or", "xor", "shl", "shr"})
_OURS = re.compile(r"\btw_\w+")
Text = tuple[str, int]  # text and its precedence


class ExprPrinter:
    """Prints expressions. `use(name)` notes that a function of the dialect is called, so that it is defined."""

    math: ClassVar[
        Mapping[str, tuple[str, str]]
    ] = {}  # function → its float and double text with {0}, {1} … for arguments
    native: ClassVar[
        Mapping[tuple[str, str], str]
    ] = {}  # (soft type, op) → function to call: arithmetic without the detour over float, signs and bits of a value

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.scalars: set[Buffer] = set()  # private buffers of one element: plain variables
        self.facts = Facts()  # ranges of the variables in force

    def use(self, name: str) -> str:
        raise NotImplementedError

    def special(self, e: Special) -> Text:
        raise NotImplementedError

    def expr(self, e: Expr, level: int = 0) -> str:
        """C text of `e`, in parentheses when it binds less tightly than `level`."""
        text, own = _PRINT[type(e)](self, e) if type(e) in _PRINT else self._unknown(e)
        return f"({text})" if own < level else text

    def _unknown(self, e: Expr) -> Text:
        raise InternalError(f"codegen has no text for {type(e).__name__}", rule="lowering is complete", loc=e.loc)

    def name(self, what: Var | Buffer) -> str:
        if what not in self.names:
            raise InternalError(
                f"{what.name!r} is used and declared nowhere", rule="lowering is complete", loc=what.loc
            )
        return self.names[what]

    def private(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """Lvalue of one element of a private array."""
        name = self.name(buffer)
        if buffer in self.scalars:
            return name
        flat = indices[0]
        for extent, i in zip(buffer.shape[1:], indices[1:], strict=True):
            flat = flat * extent + i
        return f"{name}[{self.expr(flat)}]"

    def non_negative(self, e: Expr) -> bool:
        """Whether `e` is certainly not below zero, so that floor and truncating division agree."""
        return e.dtype.kind in ("uint", "bool") or self.facts.range(e)[0] >= 0

    def as_float(self, e: Expr) -> str:
        """`e` of a soft type as an argument of float type."""
        return convert(self, self.expr(e, COND), e.dtype, FLOAT32)

    def through_float(self, text: str, to: DType) -> Text:
        return convert(self, text, FLOAT32, to), PRIMARY


def _const(p: ExprPrinter, e: Const) -> Text:
    text = literal(e)
    for called in _OURS.findall(text):
        p.use(called)
    return text, UNARY if text.startswith("-") else PRIMARY


def _var(p: ExprPrinter, e: Var) -> Text:
    return p.name(e), PRIMARY


def _load(p: ExprPrinter, e: Load) -> Text:
    if e.buffer.space in ("global", "shared", "barrier"):
        raise InternalError(f"an expression reads {e.buffer.name!r}, which is {e.buffer.space} memory",
                            rule="at thread level expressions read registers only", loc=e.loc)  # fmt: skip
    return p.private(e.buffer, e.indices), PRIMARY


def _special(p: ExprPrinter, e: Special) -> Text:
    return p.special(e)


def _infix(p: ExprPrinter, op: str, a: Expr, b: Expr) -> Text:
    level = _LEVEL[op]
    # Bit operators and comparisons mixed with arithmetic keep parentheses that C does not need and readers do.
    left = level if op not in _BITWISE else UNARY
    return f"{p.expr(a, left)} {_SIGN[op]} {p.expr(b, left + 1)}", level


def _unary(p: ExprPrinter, e: Unary) -> Text:
    if e.op == "lnot":
        return f"!{p.expr(e.a, UNARY)}", UNARY
    if e.op == "not":
        return _wrap(p, e.dtype, f"~{p.expr(e.a, UNARY)}", UNARY)
    if is_soft(e.dtype):
        return _soft_sign(p, e)
    if e.op == "neg":
        operand = p.expr(e.a, UNARY)
        return _wrap(p, e.dtype, f"-{operand}" if not operand.startswith("-") else f"-({operand})", UNARY)
    if e.dtype.is_float:
        return _math(p, "abs", (e.a,), e)
    return (p.expr(e.a), PRIMARY) if e.dtype.kind == "uint" else (f"{p.use('tw_abs')}({p.expr(e.a)})", PRIMARY)


def _soft_sign(p: ExprPrinter, e: Unary) -> Text:
    sign = SIGN_BIT.get(e.dtype.name)
    if sign is None:
        value = p.as_float(e.a)
        return p.through_float(f"-{value}" if e.op == "neg" else p.math["abs"][0].format(value), e.dtype)
    if (native := p.native.get((e.dtype.name, e.op))) is not None:
        return f"{p.use(native)}({p.expr(e.a)})", PRIMARY
    text = f"^ {sign:#x}" if e.op == "neg" else f"& {sign - 1:#x}"
    return f"({ctype(e.dtype)})({p.expr(e.a, UNARY)} {text})", UNARY


def _binary(p: ExprPrinter, e: Binary) -> Text:
    if e.op in ("land", "lor"):
        return _infix(p, e.op, e.a, e.b)
    if e.op in ("floordiv", "floormod"):
        return _floor(p, e)
    if is_soft(e.dtype):
        return _soft_binary(p, e)
    if e.op in ("min", "max", "pow") and e.dtype.is_float:
        return _math(p, e.op, (e.a, e.b), e)
    if e.op in ("min", "max", "pow"):
        return f"{p.use('tw_' + e.op)}<{ctype(e.dtype)}>({p.expr(e.a)}, {p.expr(e.b)})", PRIMARY
    return _wrap(p, e.dtype, *_infix(p, e.op, e.a, e.b))


def _soft_binary(p: ExprPrinter, e: Binary) -> Text:
    native = p.native.get((e.dtype.name, e.op))
    if native is not None:
        return f"{p.use(native)}({p.expr(e.a)}, {p.expr(e.b)})", PRIMARY
    a, b = p.as_float(e.a), p.as_float(e.b)
    if e.op in _SIGN:
        return p.through_float(f"{a} {_SIGN[e.op]} {b}", e.dtype)
    return p.through_float(_function(p, e.op, FLOAT32, e).format(a, b), e.dtype)


def _floor(p: ExprPrinter, e: Binary) -> Text:
    by = int(e.b.value) if isinstance(e.b, Const) else 0
    if by > 0 and by & (by - 1) == 0:  # shifts and masks round towards minus infinity for either sign
        a = p.expr(e.a, UNARY)
        if e.op == "floormod":
            return f"{a} & {by - 1}", _LEVEL["and"]
        return f"{a} >> {by.bit_length() - 1}", _LEVEL["shr"]
    if p.non_negative(e.a) and p.non_negative(e.b):
        return _wrap(p, e.dtype, *_infix(p, "truncdiv" if e.op == "floordiv" else "truncmod", e.a, e.b))
    return f"{p.use('tw_' + e.op)}<{ctype(e.dtype)}>({p.expr(e.a)}, {p.expr(e.b)})", PRIMARY


def _wrap(p: ExprPrinter, dtype: DType, text: str, level: int) -> Text:
    """Arithmetic narrower than int happens in int: cut it back."""
    if dtype.is_float or dtype.bits >= 32 or dtype.kind == "bool":
        return text, level
    return f"({ctype(dtype)})({text})", UNARY


def _compare(p: ExprPrinter, e: Compare) -> Text:
    if is_soft(e.a.dtype):
        return f"{p.as_float(e.a)} {_SIGN[e.op]} {p.as_float(e.b)}", _LEVEL[e.op]
    return _infix(p, e.op, e.a, e.b)


def _select(p: ExprPrinter, e: Select) -> Text:
    return f"{p.expr(e.cond, COND + 1)} ? {p.expr(e.a, COND + 1)} : {p.expr(e.b, COND)}", COND


def _cast(p: ExprPrinter, e: Cast) -> Text:
    return convert(p, p.expr(e.a, UNARY), e.a.dtype, e.dtype, e.saturate), UNARY


def _bitcast(p: ExprPrinter, e: Bitcast) -> Text:
    value = p.expr(e.a)
    native = p.native.get((e.a.dtype.name, "bits"))
    if native is not None:
        value = f"{p.use(native)}({value})"
    if ctype(e.dtype) == ctype(e.a.dtype):
        return value, PRIMARY if native is not None else 0
    return f"{p.use('tw_bitcast')}<{ctype(e.dtype)}, {ctype(e.a.dtype)}>({value})", PRIMARY


def _call(p: ExprPrinter, e: Call) -> Text:
    return _bits(p, e) if e.fn in ("popcount", "clz", "ffs") else _math(p, e.fn, e.args, e)


def _bits(p: ExprPrinter, e: Call) -> Text:
    """Counts of bits are of the operand's own width; it enters without a sign, so that widening adds only zeros."""
    dtype = e.args[0].dtype
    unsigned = ctype(DTYPES[f"uint{dtype.bits}"])
    text = _function(p, e.fn, dtype, e).format(f"({unsigned})({p.expr(e.args[0])})")
    return (f"{text} - {32 - dtype.bits}", _LEVEL["sub"]) if e.fn == "clz" and dtype.bits < 32 else (text, PRIMARY)


def _math(p: ExprPrinter, fn: str, args: tuple[Expr, ...], e: Expr) -> Text:
    computed = args[0].dtype if args else e.dtype
    if any(is_soft(a.dtype) for a in args):
        text = _function(p, fn, FLOAT32, e).format(
            *(p.as_float(a) if is_soft(a.dtype) else p.expr(a, COND) for a in args)
        )
        return p.through_float(text, e.dtype) if is_soft(e.dtype) else (text, PRIMARY)
    return _function(p, fn, computed, e).format(*(p.expr(a, COND) for a in args)), PRIMARY


def _function(p: ExprPrinter, fn: str, dtype: DType, e: Expr) -> str:
    row = p.math.get(fn)
    text = row[1 if dtype.name == "float64" or dtype.bits == 64 else 0] if row else ""
    if not text:
        raise InternalError(
            f"codegen has no text for {fn} on {dtype}", rule="every function of the table has text", loc=e.loc
        )
    for called in _OURS.findall(text):
        p.use(called)
    return text


_PRINT: dict[type, Callable[[Any, Any], Text]] = {
    Const: _const, Var: _var, Load: _load, Special: _special, Unary: _unary, Binary: _binary, Compare: _compare,
    Select: _select, Cast: _cast, Bitcast: _bitcast, Call: _call,
}  # fmt: skip
__all__ = ["COND", "PRIMARY", "SOFT", "UNARY", "ExprPrinter"]
