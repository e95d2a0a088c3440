"""Integer facts about index expressions: ranges, divisibility, and a simplifier that uses them.

Everything here is exact over the integers: index arithmetic is assumed not to wrap (the index pass chooses widths).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .dtype import BOOL, INT32, INT64, DType
from .expr import Binary, Cast, Compare, Const, Expr, Select, Special, Unary, Var, binary, const
from .linear import coefficient, collect, linear, linear_difference, mentions, rebuild, simplify_logic, substitute
from .node import map_children
from .stmt import ZERO

Range = tuple[float, float]  # inclusive; infinities where unknown
UNKNOWN: Range = (-math.inf, math.inf)


class Facts:
    """What is known about variables: inclusive ranges and divisors. Specials are looked up by name."""

    def __init__(self, ranges: Mapping[Any, Range] | None = None, divisors: Mapping[Any, int] | None = None) -> None:
        self.ranges: dict[Any, Range] = dict(ranges or {})
        self.divisors: dict[Any, int] = dict(divisors or {})
        self._simplified: dict[Expr, Expr] = {}

    def with_range(self, var: Var, low: float, high: float) -> Facts:
        """These facts and one more range."""
        more = Facts(self.ranges, self.divisors)
        more.ranges[var] = (low, high)
        return more

    def with_loop(self, var: Var, start: Expr, stop: Expr, step: Expr) -> Facts:
        """These facts inside `for var in range(start, stop, step)`."""
        low, high = self.range(start), self.range(stop - 1)
        more = self.with_range(var, low[0], max(high[1], low[0]))
        if isinstance(step, Const) and step.value > 1:
            more.divisors[var] = math.gcd(int(step.value), self.divisor(start))
        elif not isinstance(step, Const) or step.value < 0:
            more.ranges[var] = UNKNOWN
        return more

    def assuming(self, cond: Expr) -> Facts:
        """These facts where `cond` holds, as far as it bounds a single variable."""
        if isinstance(cond, Binary) and cond.op == "land":
            return self.assuming(cond.a).assuming(cond.b)
        if not isinstance(cond, Compare) or not is_index(cond.a.dtype) or cond.op not in ("lt", "le", "gt", "ge", "eq"):
            return self
        terms = linear(linear_difference(cond.a, cond.b, self))
        atoms = [a for a in terms if a is not None]
        if len(atoms) != 1 or not isinstance(atoms[0], Var) or abs(terms[atoms[0]]) != 1:
            return self
        var, sign, offset = atoms[0], terms[atoms[0]], terms.get(None, 0)
        low, high = self.range(var)
        upper = {"lt": -1, "le": 0, "eq": 0}.get(cond.op)  # sign·var + offset <= upper
        lower = {"gt": 1, "ge": 0, "eq": 0}.get(cond.op)  # sign·var + offset >= lower
        if sign < 0:
            upper, lower = (None if lower is None else -lower), (None if upper is None else -upper)
            offset = -offset
        if upper is not None:
            high = min(high, upper - offset)
        if lower is not None:
            low = max(low, lower - offset)
        return self.with_range(var, low, high)

    # --- ranges -------------------------------------------------------------------------------------------------------
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

    # --- proofs -------------------------------------------------------------------------------------------------------
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
        low, high = self.range(linear_difference(cond.a, cond.b, self))
        return _decide(cond.op, low, high)

    # --- simplification -----------------------------------------------------------------------------------------------
    def simplify(self, e: Expr) -> Expr:
        """An equal expression, usually shorter: sums collected, divisions and remainders split, comparisons proven."""
        if not e._fields:
            return e
        known_form = self._simplified.get(e)
        if known_form is None:
            known_form = self._simplified[e] = self._simplify(e)
        return known_form

    def _simplify(self, e: Expr) -> Expr:
        if isinstance(e, Binary) and e.op in ("add", "sub", "mul") and is_index(e.dtype):
            return self._simplify_sum(e)
        new = map_children(e, lambda c: self.simplify(c) if isinstance(c, Expr) else c)
        if isinstance(new, Compare) and new.a.dtype.is_int:
            known = self.prove(new)
            return new if known is None else const(known, BOOL)
        if isinstance(new, Binary) and new.dtype is BOOL:
            return simplify_logic(new)
        if isinstance(new, Binary) and is_index(new.dtype):
            return self._simplify_int(new)
        if isinstance(new, Select) and isinstance(new.cond, Const):
            return new.a if new.cond.value else new.b
        return new

    def _simplify_sum(self, e: Binary) -> Expr:
        """The whole sum at once: its terms simplified, then collected anew."""
        out: dict[Expr | None, int] = {}
        for atom, factor in linear(e).items():
            if atom is None:
                out[None] = out.get(None, 0) + factor
            elif atom is e:  # a product of two variables
                collect(map_children(e, lambda c: self.simplify(c) if isinstance(c, Expr) else c), factor, out)
            else:
                collect(self.simplify(atom), factor, out)
        return rebuild(out, e.dtype)

    def _simplify_int(self, e: Binary) -> Expr:
        if e.op in ("min", "max"):
            low, high = self.range(linear_difference(e.a, e.b, self))
            if high <= 0:
                return e.a if e.op == "min" else e.b
            if low >= 0:
                return e.b if e.op == "min" else e.a
        if e.op in ("floordiv", "floormod") and isinstance(e.b, Const) and e.b.value > 0:
            return self._simplify_division(e, int(e.b.value))
        if e.op == "xor":
            return self._simplify_xor(e)
        return binary(e.op, e.a, e.b)

    def _simplify_xor(self, e: Binary) -> Expr:
        """(q + r) ^ b = (q ^ b) + r when a power of two n divides q and b, and 0 <= r < n."""
        g = self.divisor(e.b)
        n = g & -g
        if n <= 1:
            return e.a if isinstance(e.b, Const) and e.b.value == 0 else binary("xor", e.a, e.b)
        high: dict[Expr | None, int] = {}
        low: dict[Expr | None, int] = {}
        for atom, factor in linear(e.a).items():
            whole = factor * (self.divisor(atom) if atom is not None else 1) % n == 0
            (high if whole else low)[atom] = factor
        rest = rebuild(low, e.dtype)
        a, b = self.range(rest)
        if not (low and a >= 0 and b < n):
            return binary("xor", e.a, e.b)
        return binary("xor", rebuild(high, e.dtype), e.b) + rest

    def _simplify_division(self, e: Binary, n: int) -> Expr:
        """(q·n + r) // n = q + r // n and (q·n + r) % n = r % n, for the part q·n of the sum that n divides."""
        terms = linear(e.a)
        whole: dict[Expr | None, int] = {}
        rest: dict[Expr | None, int] = {}
        for atom, factor in terms.items():
            target = whole if factor * (self.divisor(atom) if atom is not None else 1) % n == 0 else rest
            target[atom] = factor
        if None in rest and rest[None] >= n:  # move whole multiples out of the constant
            whole[None] = rest[None] // n * n
            rest[None] %= n
        remainder = rebuild(rest, e.dtype)
        low, high = self.range(remainder)
        if e.op == "floormod":
            if low >= 0 and high < n:
                return remainder
            split = self._split(rest, n)
            if split is not None:  # (g·a + r) % (g·m) = g·(a % m) + r for 0 <= r < g
                g, a, r = split
                return self._division("floormod", rebuild(a, e.dtype), n // g) * g + rebuild(r, e.dtype)
            nested = self._nested_mod(remainder, n)
            return binary("floormod", remainder, const(n, e.dtype)) if nested is None else nested
        quotient = rebuild({a: f // n for a, f in whole.items() if f % n == 0}, e.dtype)
        for atom, factor in whole.items():
            if factor % n:  # the atom itself carries a part of the divisor
                quotient = quotient + binary("floordiv", rebuild({atom: factor}, e.dtype), const(n, e.dtype))
        if low >= 0 and high < n:
            return quotient
        split = self._split(rest, n)
        if split is not None:  # (g·a + r) // (g·m) = a // m for 0 <= r < g
            g, a, _ = split
            return quotient + self._division("floordiv", rebuild(a, e.dtype), n // g)
        return quotient + self._nested_div(remainder, n)

    def _division(self, op: str, a: Expr, n: int) -> Expr:
        return (
            self._simplify_division(Binary(op, a, const(n, a.dtype), dtype=a.dtype), n)
            if n > 1
            else (a if op == "floordiv" else const(0, a.dtype))
        )

    def _split(
        self, terms: Mapping[Expr | None, int], n: int
    ) -> tuple[int, dict[Expr | None, int], dict[Expr | None, int]] | None:
        """(g, a, r) with terms = g·a + r, g > 1 a divisor of n, 0 <= r < g."""
        for g in sorted({math.gcd(f, n) for a, f in terms.items() if a is not None}, reverse=True):
            if g <= 1:
                return None
            high: dict[Expr | None, int] = {a: f // g for a, f in terms.items() if a is not None and f % g == 0}
            low: dict[Expr | None, int] = {a: f for a, f in terms.items() if a is not None and f % g}
            offset = terms.get(None, 0)
            high[None], low[None] = offset // g, offset % g
            bounds = self.range(rebuild(low, INT32))
            if bounds[0] >= 0 and bounds[1] < g:
                return g, high, low
        return None

    def _nested_div(self, e: Expr, n: int) -> Expr:
        if isinstance(e, Binary) and e.op == "floordiv" and isinstance(e.b, Const) and e.b.value > 0:
            return binary("floordiv", e.a, const(int(e.b.value) * n, e.dtype))
        return binary("floordiv", e, const(n, e.dtype))

    def _nested_mod(self, e: Expr, n: int) -> Expr | None:
        if isinstance(e, Binary) and e.op == "floormod" and isinstance(e.b, Const) and int(e.b.value) % n == 0:
            return self._simplify_division(Binary("floormod", e.a, const(n, e.dtype), dtype=e.dtype), n)
        return None


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


__all__ = ["ZERO", "Facts", "coefficient", "linear", "linear_difference", "mentions", "rebuild", "substitute"]
