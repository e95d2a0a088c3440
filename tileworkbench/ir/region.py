"""Boxes of buffers: do two of them meet, at which loop distance, and which box holds both."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..errors import InternalError
from .arith import Facts, coefficient, linear_difference, substitute
from .expr import Buffer, Const, Expr, Var, as_expr, compare, maximum, minimum, same
from .stmt import Region


class Distance(NamedTuple):
    """Loop distances `later trip - earlier trip` at which two accesses may touch one element, both ends inclusive."""

    low: float
    high: float

    def __contains__(self, trips: object) -> bool:
        return isinstance(trips, (int, float)) and self.low <= trips <= self.high


ANY = Distance(-math.inf, math.inf)


def root(b: Buffer) -> Buffer:
    """The buffer whose storage `b` is a view of; `b` itself when it is no view."""
    while isinstance(base := b.attr("view_of"), Buffer):
        b = base
    return b


def is_whole(r: Region) -> bool:
    """True when the region starts at 0 and has the buffer's shape."""
    shape = r.buffer.shape
    if len(shape) != len(r.starts):
        return False
    for start, extent, full in zip(r.starts, r.extents, shape, strict=True):
        if not (type(start) is Const and start.value == 0 and (extent is full or same(extent, full))):
            return False
    return True


def overlap(a: Region, b: Region, facts: Facts | None = None, independent: Iterable[Var] = ()) -> bool | None:
    """False when the regions surely share no element, True when they surely share one, None when unknown.

    `independent` variables may have different values in the two accesses (two iterations, or two threads)."""
    if root(a.buffer) is not root(b.buffer):
        return False
    if a.buffer is not b.buffer:
        return None
    facts = facts or Facts()
    b, facts = _apart(b, facts, independent)
    certain = True
    for s, e, t, f in zip(a.starts, a.extents, b.starts, b.extents, strict=True):
        before = facts.prove(compare("lt", s, as_expr(t) + f))
        after = facts.prove(compare("lt", t, as_expr(s) + e))
        if before is False or after is False:
            return False
        filled = facts.range(e)[0] > 0 and facts.range(f)[0] > 0
        certain = certain and filled and before is True and after is True
    return True if certain else None


def distance(
    a: Region, b: Region, var: Var, step: int = 1, facts: Facts | None = None, independent: Iterable[Var] = ()
) -> Distance | None:
    """The trips that lie between an access `a` and an access `b` of a loop over `var` when both touch one element:
    None when they never do, ANY when nothing is known. The inner loops' variables are `independent`."""
    if root(a.buffer) is not root(b.buffer):
        return None
    if a.buffer is not b.buffer:
        return ANY
    facts = facts or Facts()
    b, facts = _apart(b, facts, independent)
    low, high = ANY
    for s, e, t, f in zip(a.starts, a.extents, b.starts, b.extents, strict=True):
        found = _along(s, e, t, f, var, step, facts)
        if found is None:
            return None
        low, high = max(low, found.low), min(high, found.high)
    return Distance(low, high) if low <= high else None


def _along(s: Expr, e: Any, t: Expr, f: Any, var: Var, step: int, facts: Facts) -> Distance | None:
    """One dimension: [s, s + e) at one trip meets [t, t + f) `d` trips later when -f < t - s + c·d < e."""
    grows, also = coefficient(s, var), coefficient(t, var)
    if grows is None or grows != also:
        return ANY
    low, high = facts.range(linear_difference(t, s))
    first, last = facts.range(e)[1], facts.range(f)[1]
    c = grows * step
    if c == 0:
        return None if low >= first or high <= -last else ANY
    ends = ((-last - high) / c, (first - low) / c)
    least, most = min(ends), max(ends)
    least = least if math.isinf(least) else math.floor(least) + 1
    most = most if math.isinf(most) else math.ceil(most) - 1
    return Distance(least, most) if least <= most else None


def contains(outer: Region, inner: Region, facts: Facts | None = None) -> bool | None:
    """True when `outer` surely holds all of `inner`, False when it surely does not, None when unknown."""
    if outer.buffer is not inner.buffer:
        return None if root(outer.buffer) is root(inner.buffer) else False
    facts = facts or Facts()
    certain = True
    for s, e, t, f in zip(outer.starts, outer.extents, inner.starts, inner.extents, strict=True):
        begins = facts.prove(compare("le", s, t))
        ends = facts.prove(compare("le", as_expr(t) + f, as_expr(s) + e))
        if begins is False or ends is False:
            return False
        certain = certain and begins is True and ends is True
    return True if certain else None


def hull(a: Region, b: Region, facts: Facts | None = None) -> Region:
    """The smallest box known to hold both regions of one buffer; `a` or `b` itself when it holds the other."""
    if a.buffer is not b.buffer:
        raise InternalError(f"no box holds parts of {a.buffer.name} and {b.buffer.name}", loc=a.loc)
    facts = facts or Facts()
    if contains(a, b, facts):
        return a
    if contains(b, a, facts):
        return b
    starts, extents = [], []
    for s, e, t, f in zip(a.starts, a.extents, b.starts, b.extents, strict=True):
        start = facts.simplify(minimum(s, t))
        end = facts.simplify(maximum(as_expr(s) + e, as_expr(t) + f))
        extent = facts.simplify(linear_difference(end, start))
        starts.append(start)
        extents.append(int(extent.value) if isinstance(extent, Const) else extent)
    return Region(a.buffer, tuple(starts), tuple(extents), loc=a.loc)


def _apart(b: Region, facts: Facts, independent: Iterable[Var]) -> tuple[Region, Facts]:
    """`b` with its independent variables renamed, and facts that know the new ones alike."""
    fresh = {v: Var(f"{v.name}'", v.dtype) for v in independent}
    if not fresh:
        return b, facts
    more = Facts(facts.ranges, facts.divisors)
    for old, new in fresh.items():
        if old in facts.ranges:
            more.ranges[new] = facts.ranges[old]
        if old in facts.divisors:
            more.divisors[new] = facts.divisors[old]
    extents = tuple(substitute(e, fresh) if isinstance(e, Expr) else e for e in b.extents)
    return Region(b.buffer, substitute(b.starts, fresh), extents, loc=b.loc), more
