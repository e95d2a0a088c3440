"""What is surely so about integer expressions: their ranges, their divisors, and whether a condition holds.

Everything here is exact over the integers: index arithmetic is assumed not to wrap (the index pass chooses widths).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .dtype import BOOL, INT32, INT64, DType
from .expr import Binary, Cast, Compare, Const, Select, Special, Unary, Var
from .linear import linear_difference

Range = tuple[float, float]  # inclusive; infinities where unknown
UNKNOWN: Range = (-math.inf, math.inf)


class Bounds:
    """Inclusive ranges and divisors of variables, and what follows from them. Specials are looked up by name."""

    def __init__(self, ranges: Mapping[Any, Range] | None = None, divisors: Mapping[Any, int] | None = None) -> None:
        self.ranges: dict[Any, Range] = dict(ranges or {})
        self.divisors: dict[Any, int] = dict(divisors or {})

    def range(self, e: Any) -> Range:
        """Inclusive bounds of an integer expression."""
        if isinstance(e, (int, float)):
            return (e, e)
        if isinstance(e, Const):
            return (e.value, e.value)
        if isinstance(e, Var):
            return self.ranges.get(e, UNKNOWN)
        if isinstance(e, Special):
            return self.ranges.get(e.name, (0, math.inf))
        if isinstance(e, Binary):
            return self._range_binary(e) if is_index(e.dtype) else _bounds(e.dtype)
        if isinstance(e, Select):
            (a, b), (c, d) = self.range(e.a), self.range(e.b)
            return (min(a, c), max(b, d))
        if isinstance(e, Cast) and e.dtype.is_int and e.a.dtype.is_int:
            inner, own = self.range(e.a), _bounds(e.dtype)
            keeps = is_index(e.dtype) or (own[0] <= inner[0] and inner[1] <= own[1])
            return inner if keeps else own
        if isinstance(e, Unary) and e.op == "neg" and is_index(e.dtype):
            low, high = self.range(e.a)
            return (-high, -low)
        return _bounds(e.dtype)

    def _range_binary(self, e: Binary) -> Range:
        (a, b), (c, d) = self.range(e.a), self.range(e.b)
        op = e.op
        if op == "add":
            return (a + c, b + d)
        if op == "sub":
            return (a - d, b - c)
        if op == "mul":
            products = [0 if 0 in (x, y) else x * y for x in (a, b) for y in (c, d)]
            return (min(products), max(products))
        if op == "min":
            return (min(a, c), min(b, d))
        if op == "max":
            return (max(a, c), max(b, d))
        if op == "floordiv" and c == d and c > 0:
            return (_floordiv(a, c), _floordiv(b, c))
        if op == "floordiv" and c > 0 and a >= 0:
            return (0, _floordiv(b, c))
        if op in ("floormod", "truncmod") and c > 0 and (op == "floormod" or a >= 0):
            if c == d and math.isfinite(a) and math.isfinite(b) and a // c == b // c:
                return (a % c, b % c)
            return (0, min(d - 1, b) if a >= 0 else d - 1)
        if op in ("and",) and a >= 0 and c >= 0:
            return (0, min(b, d))
        if op in ("xor", "or") and a >= 0 and c >= 0 and max(b, d) < math.inf:
            return (0, (1 << max(int(max(b, d)).bit_length(), 0)) - 1)
        if op == "shl" and c == d and c >= 0:
            return (a * 2**c, b * 2**c)
        if op == "shr" and c == d and c >= 0:
            return (_floordiv(a, 2**c), _floordiv(b, 2**c))
        return UNKNOWN

    # --- divisibility -------------------------------------------------------------------------------------------------
    def divisor(self, e: Any) -> int:
        """The greatest known number that divides `e` (0 divides nothing but is divided by all: returns 0)."""
        if isinstance(e, int):
            return abs(e)
        if isinstance(e, Const):
            return abs(int(e.value)) if not isinstance(e.value, float) else 1
        if isinstance(e, (Var, Special)):
            return self.divisors.get(e if isinstance(e, Var) else e.name, 1)
        if not is_index(e.dtype):
            return 1
        if isinstance(e, Cast):
            return self.divisor(e.a) if e.a.dtype.is_int else 1
        if isinstance(e, Binary):
            a, b = self.divisor(e.a), self.divisor(e.b)
            if e.op in ("add", "sub", "min", "max"):
                return math.gcd(a, b)
            if e.op == "mul":
                return a * b
            if e.op == "floormod":
                return math.gcd(a, b)
            if e.op in ("floordiv", "truncdiv") and isinstance(e.b, Const) and e.b.value > 0 and a % e.b.value == 0:
                return a // int(e.b.value)
            if e.op in ("xor", "or"):
                g = math.gcd(a, b)
                return g & -g if g else 0
            if e.op == "shl" and isinstance(e.b, Const):
                return a << int(e.b.value)
        if isinstance(e, Select):
            return math.gcd(self.divisor(e.a), self.divisor(e.b))
        return 1

    def divides(self, n: int, e: Any) -> bool:
        """True when `n` surely divides `e`."""
        return self.divisor(e) % n == 0

    def starts_at(self, n: int, tensor: Any) -> bool:
        """True when `tensor` surely starts at a multiple of `n` bytes; one of which nothing is known does."""
        return self.divisors.get(tensor, n) % n == 0

    def prove(self, cond: Any) -> bool | None:
        """True or False when the condition is surely so, None when unknown."""
        if isinstance(cond, bool):
            return cond
        if isinstance(cond, Const):
            return bool(cond.value)
        if isinstance(cond, Binary) and cond.op in ("land", "lor"):
            a, b = self.prove(cond.a), self.prove(cond.b)
            decisive = cond.op == "lor"
            if decisive in (a, b):
                return decisive
            return (not decisive) if a is not None and b is not None else None
        if isinstance(cond, Unary) and cond.op == "lnot":
            inner = self.prove(cond.a)
            return None if inner is None else not inner
        if not isinstance(cond, Compare) or not cond.a.dtype.is_int:
            return None
        if not is_index(cond.a.dtype):  # narrow types wrap, so their differences say nothing
            (low, high), (least, most) = self.range(cond.a), self.range(cond.b)
            return _decide(cond.op, low - most, high - least)
        low, high = self.range(linear_difference(cond.a, cond.b))
        return _decide(cond.op, low, high)


def is_index(dtype: DType) -> bool:
    """True for the types of index arithmetic, which is taken not to wrap. Narrow and unsigned types do wrap: they are
    data, and only their bounds are known."""
    return dtype is INT32 or dtype is INT64


def _bounds(dtype: DType) -> Range:
    """What a value of the type can be; unknown for index types, whose widths are chosen later."""
    if dtype is BOOL:
        return (0, 1)
    if not dtype.is_int or is_index(dtype):
        return UNKNOWN
    return (dtype.min_value(), dtype.max_value())


def _floordiv(a: float, b: float) -> float:
    return a if math.isinf(a) else a // b


def _decide(op: str, low: float, high: float) -> bool | None:
    """Truth of `difference op 0` when the difference lies in [low, high]."""
    rules = {
        "lt": (high < 0, low >= 0),
        "le": (high <= 0, low > 0),
        "gt": (low > 0, high <= 0),
        "ge": (low >= 0, high < 0),
        "eq": (low == high == 0, low > 0 or high < 0),
        "ne": (low > 0 or high < 0, low == high == 0),
    }
    yes, no = rules[op]
    return True if yes else False if no else None
