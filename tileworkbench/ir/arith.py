"""Integer facts about index expressions: ranges, divisibility, and a simplifier that uses them.

Everything here is exact over the integers: index arithmetic is assumed not to wrap (the index pass chooses widths).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .bounds import UNKNOWN, Bounds, Range, is_index
from .dtype import BOOL, INT32
from .expr import Binary, Compare, Const, Expr, Select, Var, binary, const
from .linear import coefficient, collect, linear, linear_difference, mentions, rebuild, simplify_logic, substitute
from .node import map_children
from .stmt import ZERO


class Facts(Bounds):
    """What is known about variables, and the simplifier that uses it."""

    def __init__(self, ranges: Mapping[Any, Range] | None = None, divisors: Mapping[Any, int] | None = None) -> None:
        super().__init__(ranges, divisors)
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
        terms = linear(linear_difference(cond.a, cond.b))
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
            low, high = self.range(linear_difference(e.a, e.b))
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


__all__ = ["ZERO", "Facts", "coefficient", "linear", "linear_difference", "mentions", "rebuild", "substitute"]
