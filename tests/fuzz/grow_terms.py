"""Random scalar terms: indices that stay inside, conditions, and values of a wanted dtype and range."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from .terms import EXACT, Both, Choose, Get, Name, Number, Pair, Single, Term, Test, To

FLOATS = ("float16", "bfloat16", "float32")
Range = tuple[int, int]


@dataclass
class Readable:
    """What an expression may read: a tile (every index inside) or a tensor (0 outside)."""

    name: str
    space: str
    shape: tuple[int, ...]
    dtype: str
    low: int
    high: int


@dataclass
class Place:
    """Where a term stands: index names with their ranges, parallel loop variables with extents, readable buffers, and
    names of values (lets, variables) by dtype."""

    scalars: dict[str, Range] = field(default_factory=dict)
    loops: dict[str, int] = field(default_factory=dict)
    buffers: list[Readable] = field(default_factory=list)
    values: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    pinned: dict[str, Get] = field(default_factory=dict)  # stored in this loop: only readable at this index
    corner: dict[str, tuple[Term, ...]] = field(default_factory=dict)  # tensors: start of the block's part


def plus(a: Term, b: Term) -> Term:
    if isinstance(a, Number) and a.value_ == 0:
        return b
    return a if isinstance(b, Number) and b.value_ == 0 else Pair("+", a, b)


def scaled(a: Term, n: int) -> Term:
    return a if n == 1 else Pair("*", a, Number(n))


def index(rng: random.Random, place: Place, extent: int, plain: bool) -> Term:
    """An index inside `extent`; `plain`: a loop variable over the whole dimension when there is one."""
    whole = [v for v, n in place.loops.items() if n == extent]
    shorter = [v for v, n in place.loops.items() if n < extent]
    if whole and (plain or rng.random() < 0.5):
        return Name(rng.choice(whole))
    kind = rng.randrange(8)
    if kind == 0 and whole:
        return Pair("-", Number(extent - 1), Name(rng.choice(whole)))
    if kind == 1 and place.loops:
        shift = rng.randrange(extent)
        return Pair("%", plus(Name(rng.choice(list(place.loops))), Number(shift)), Number(extent))
    if kind == 2 and shorter:
        v = rng.choice(shorter)
        return plus(Name(v), Number(rng.randrange(extent - place.loops[v] + 1)))
    if kind == 3 and place.loops:
        v = rng.choice(list(place.loops))
        if (place.loops[v] - 1) // 2 < extent:
            return Pair("//", Name(v), Number(2))
    if kind == 4 and place.loops:
        v = rng.choice(list(place.loops))
        if (place.loops[v] - 1) * 2 < extent:
            return Pair("*", Name(v), Number(2))
    if kind == 5:
        fits = [v for v, (low, high) in place.scalars.items() if low >= 0 and high < extent]
        if fits:
            return Name(rng.choice(fits))
    tables = [b for b in place.buffers if b.space == "shared" and b.dtype == "int32" and b.name not in place.pinned]
    if kind == 7 and tables and len(tables[0].shape) == 1 and place.loops:
        entry = Get(tables[0].name, "int32", (index(rng, place, tables[0].shape[0], True),))
        return Pair("%", entry, Number(extent))
    near = shorter + whole
    return Name(rng.choice(near)) if near else Number(rng.randrange(extent))


def condition(rng: random.Random, place: Place, depth: int = 1) -> Term:
    roll = rng.random()
    if depth and roll < 0.2:
        return Both(rng.choice(("and", "or")), condition(rng, place, 0), condition(rng, place, 0))
    flags = [b for b in place.buffers if b.dtype == "bool" and b.name not in place.pinned]
    if flags and roll < 0.4:
        b = rng.choice(flags)
        return read(rng, place, b)
    if place.buffers and roll < 0.6:
        b = rng.choice(place.buffers)
        if b.dtype != "bool":
            return Test(
                rng.choice(("<", ">=", "==", "!=")), read(rng, place, b), Number(rng.randint(-2, 2) if b.low < 0 else 1)
            )
    a, high = _some_index(rng, place)
    if roll > 0.85:
        return Test(rng.choice(("==", "!=")), Pair("%", a, Number(rng.randint(2, 4))), Number(rng.randrange(2)))
    return Test(rng.choice(("<", "<=", ">", ">=", "==", "!=")), a, Number(rng.randint(0, max(1, high))))


def block_condition(rng: random.Random, place: Place) -> Term:
    """A condition that is the same for a whole block: of indices, variables or an element of a tensor."""
    variables = [n for n, v in place.values.items() if v[0] == "int32"]
    if variables and rng.random() < 0.4:
        return Test(rng.choice(("<", ">=", "!=")), Name(rng.choice(variables)), Number(rng.randint(0, 6)))
    tensors = [b for b in place.buffers if b.space == "global" and b.dtype != "bool"]
    if tensors and rng.random() < 0.3:
        b = rng.choice(tensors)
        return Test(rng.choice(("<", ">=")), Get(b.name, b.dtype, place.corner[b.name]), Number(1))
    return condition(rng, Place(scalars=place.scalars), 0)


def _some_index(rng: random.Random, place: Place) -> tuple[Term, int]:
    names = [(v, n - 1) for v, n in place.loops.items()] + [(v, high) for v, (_, high) in place.scalars.items()]
    if not names:
        return Number(rng.randrange(4)), 4
    v, high = rng.choice(names)
    if len(names) > 1 and rng.random() < 0.3:
        w, more = rng.choice(names)
        return Pair("+", Name(v), Name(w)), high + more
    return Name(v), high


def read(rng: random.Random, place: Place, b: Readable) -> Get:
    """An element of a buffer that an expression may read."""
    if b.name in place.pinned:
        return place.pinned[b.name]
    plain = rng.random() < (0.85 if b.space == "fragment" else 0.55)
    if b.space != "global":
        return Get(b.name, b.dtype, tuple(index(rng, place, n, plain) for n in b.shape))
    corner = place.corner.get(b.name, (Number(0),) * len(b.shape))
    loops = list(place.loops)[-len(b.shape) :]
    lead = len(b.shape) - len(loops)
    entries: list[Term] = []
    for d, n in enumerate(b.shape):
        start = corner[d]
        if d < lead or not loops:
            entries.append(start if rng.random() < 0.7 else Number(rng.randrange(max(1, n))))
        else:
            entries.append(plus(start, Name(loops[d - lead])))
    if rng.random() < 0.2:
        entries[-1] = plus(entries[-1], Number(rng.choice((-1, 1, 2))))
    return Get(b.name, b.dtype, tuple(entries))


def value(rng: random.Random, place: Place, dtype: str, low: int, high: int, depth: int = 3) -> Term:
    """A term of `dtype` whose values lie in [low, high]."""
    made, a, b = _value(rng, place, dtype, depth)
    if a >= low and b <= high:
        return made
    if dtype == "bool":
        return made
    if dtype not in FLOATS and low <= 0 and rng.random() < 0.4 and high > 0 and a >= EXACT[dtype][0]:
        return Pair("%", made, Number(high + 1), dtype) if high + 1 <= EXACT[dtype][1] else Number(high, dtype)
    if a < low:
        made = Pair("max", made, Number(low), dtype)
    return Pair("min", made, Number(high), dtype) if b > high else made


def _value(rng: random.Random, place: Place, dtype: str, depth: int) -> tuple[Term, int, int]:
    if dtype == "bool":
        return condition(rng, place), 0, 1
    if depth == 0 or rng.random() < 0.15:
        return _leaf(rng, place, dtype)
    roll = rng.random()
    if roll < 0.62:
        return _binary(rng, place, dtype, depth)
    if roll < 0.72 and dtype != "uint8":
        made, a, b = _value(rng, place, dtype, depth - 1)
        if -b >= EXACT[dtype][0] and -a <= EXACT[dtype][1]:
            if rng.random() < 0.5:
                return Single("abs", made, dtype), 0, max(abs(a), abs(b))
            return Single("-", made, dtype), -b, -a
        return made, a, b
    if roll < 0.9:
        cond = condition(rng, place)
        guarded = _guarded(rng, place, dtype) if rng.random() < 0.4 else None
        if guarded is not None:
            return guarded
        x, a, b = _value(rng, place, dtype, depth - 1)
        y, c, d = _value(rng, place, dtype, depth - 1)
        return Choose(cond, x, y, dtype, rng.random() < 0.3), min(a, c), max(b, d)
    return _leaf(rng, place, dtype)


def _guarded(rng: random.Random, place: Place, dtype: str) -> tuple[Term, int, int] | None:
    """A neighbour that is read only where it exists."""
    found = [
        (b, v) for b in place.buffers for v, n in place.loops.items()
        if b.dtype == dtype and b.space == "shared" and b.name not in place.pinned and b.shape[-1] == n and n > 1
    ]  # fmt: skip
    if not found:
        return None
    b, v = rng.choice(found)
    shift = rng.randint(1, min(3, b.shape[-1] - 1))
    lead = tuple(index(rng, place, n, True) for n in b.shape[:-1])
    other = Number(rng.randint(0, 3), dtype)
    low, high = min(b.low, 0), max(b.high, 3)
    if rng.random() < 0.5:
        at, inside = Pair("-", Name(v), Number(shift)), Test(">=", Name(v), Number(shift))
    else:
        at = Pair("+", Name(v), Number(shift))
        inside = Test("<", at, Number(b.shape[-1]))
    return Choose(inside, Get(b.name, dtype, (*lead, at)), other, dtype), low, high


def _leaf(rng: random.Random, place: Place, dtype: str) -> tuple[Term, int, int]:
    low, high = EXACT[dtype]
    own = [b for b in place.buffers if b.dtype == dtype]
    other = [b for b in place.buffers if b.dtype != dtype and b.low >= low and b.high <= high and b.dtype != "bool"]
    named = [(n, v) for n, v in place.values.items() if v[0] == dtype]
    roll = rng.random()
    if own and roll < 0.65:
        b = rng.choice(own)
        return read(rng, place, b), b.low, b.high
    if named and roll < 0.8:
        name, (_, a, b_) = rng.choice(named)
        return Name(name, dtype), a, b_
    if other and roll < 0.9:
        b = rng.choice(other)
        return To(read(rng, place, b), dtype), b.low, b.high
    at, top = _some_index(rng, place)
    if roll < 0.97 and top <= high and not isinstance(at, Number) and top < 250:
        return To(at, dtype), 0, top
    n = rng.randint(0 if low == 0 else -9, 9)
    return Number(n, dtype, plain=False), n, n


def _binary(rng: random.Random, place: Place, dtype: str, depth: int) -> tuple[Term, int, int]:
    x, a, b = _value(rng, place, dtype, depth - 1)
    low, high = EXACT[dtype]
    ops = ["+", "+", "-", "*", "min", "max"]
    if dtype not in FLOATS:
        ops += ["//", "%"]
        ops += ["&", "|", "^"] if a >= 0 else []
        ops += ["<<", ">>"]
    op = rng.choice(ops)
    if op in ("//", "%"):
        n = rng.randint(1, 7)
        return Pair(op, x, Number(n, dtype), dtype), *((a // n, b // n) if op == "//" else (0, n - 1))
    if op in ("<<", ">>"):
        n = rng.randint(0, 3)
        c, d = (a << n, b << n) if op == "<<" else (a >> n, b >> n)
        return (Pair(op, x, Number(n, dtype), dtype), c, d) if low <= c and d <= high else (x, a, b)
    y, c, d = _value(rng, place, dtype, depth - 1)
    if op in ("&", "|", "^") and c < 0:
        op = "max"
    top = (1 << max(b, d, 1).bit_length()) - 1
    sums = {"+": (a + c, b + d), "-": (a - d, b - c), "min": (min(a, c), min(b, d)), "max": (max(a, c), max(b, d)),
            "&": (0, min(b, d)), "|": (0, top), "^": (0, top)}  # fmt: skip
    if op == "*":
        ends = [p * q for p in (a, b) for q in (c, d)]
        sums["*"] = (min(ends), max(ends))
    p, q = sums[op]
    if p < low or q > high:
        return Pair("max", x, y, dtype), max(a, c), max(b, d)
    return Pair(op, x, y, dtype), p, q
