"""MRG32k3a (L'Ecuyer 1999): two linear recurrences of order three, started and skipped ahead as cuRAND does.

A sequence begins 2^76 numbers after the one before. Skipping n numbers needs x^n modulo a recurrence's characteristic
polynomial: its coefficients c make each term the sum c0·u[k] + c1·u[k+1] + c2·u[k+2] of the terms from k on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...ir.dtype import FLOAT32, FLOAT64, INT32, UINT32, UINT64, DType
from ...ir.expr import Buffer, Expr, as_expr, binary, cast, compare, minimum, select
from ..builder import Builder
from .fractions import constant
from .text import Text, high, load, low, private, u32, u64

_SEQUENCE = 76  # of the numbers between two sequences, the power of two
_SEQUENCES = (1 << 51) - 1  # cuRAND takes the sequence's number modulo 2^51
_NORM = 2.3283065498378288e-10  # of the numbers 1 … 2^32 - 209: the greatest becomes 1
_TO_WORD = 1.000000048662  # stretches them over the words


@dataclass(frozen=True)
class Recurrence:
    """u[k+3] = a·u[k] + b·u[k+1] + c·u[k+2] modulo m; the coefficient that is subtracted is given as `negative`."""

    m: int
    negative: int
    b: int
    c: int

    @property
    def next(self) -> tuple[int, int, int]:
        return (self.m - self.negative, self.b, self.c)


RECURRENCES = (Recurrence(4294967087, 810728, 1403580, 0), Recurrence(4294944443, 1370589, 0, 527612))


class Mrg32k3a:
    """The last three terms of each recurrence."""

    def __init__(self, builder: Builder) -> None:
        self.states = [private(builder, "rng_state", UINT32, 3) for _ in RECURRENCES]
        self.powers = [private(builder, "rng_power", UINT32, 3) for _ in RECURRENCES]
        self.skip = private(builder, "rng_skip", UINT64)

    def start(self, out: Text, seed: Expr, sequence: Expr, offset: Expr) -> None:
        """Starts the thread's numbers anew."""
        unseeded = compare("eq", seed, u64(0))
        one = select(unseeded, u32(1), low(seed) ^ u32(0x55555555))
        two = select(unseeded, u32(1), high(seed) ^ u32(0xAAAAAAAA))
        for state, r, factors in zip(self.states, RECURRENCES, ((one, two, one), (two, one, two)), strict=True):
            for at, factor in enumerate(factors):
                out.store(state, low(_times(cast(factor, UINT64), u64(12345), r.m)), at)
        which = out.index("which")
        skip = out.inner()
        of_sequences = compare("eq", which, as_expr(0, INT32))
        skip.store(self.skip, select(of_sequences, sequence & u64(_SEQUENCES), offset))
        for power, r in zip(self.powers, RECURRENCES, strict=True):
            for at, c in enumerate(power_of_two(_SEQUENCE, r)):
                skip.store(power, select(of_sequences, u32(c), u32(1 if at == 1 else 0)), at)
        self._skip(skip)
        out.repeat(which, 2, skip)

    def word(self, out: Text) -> Expr:
        """The next 32 random bits."""
        # Rounded down; the greatest number would be 2^32.
        wide = cast(self._number(out), FLOAT64) * constant(_TO_WORD, FLOAT64)
        return out.let("drawn", cast(minimum(wide, constant(2.0**32 - 1, FLOAT64)), UINT32))

    def uniform(self, out: Text, dtype: DType, scale: float = 1.0) -> Expr:
        """A number in (0, 1], times `scale`."""
        unit = cast(self._number(out), FLOAT64) * constant(_NORM, FLOAT64)
        unit = cast(unit, FLOAT32) if dtype is FLOAT32 else unit
        return unit if scale == 1.0 else unit * constant(scale, dtype)

    def _number(self, out: Text) -> Expr:
        """The difference of the recurrences' next terms, in 1 … m."""
        first, second = (self._step(s, r, out) for s, r in zip(self.states, RECURRENCES, strict=True))
        less = first - second
        return out.let("number", select(compare("le", first, second), less + u32(RECURRENCES[0].m), less))

    def _step(self, state: Buffer, r: Recurrence, out: Text) -> Expr:
        made = out.let("term", low(_following([cast(load(state, at), UINT64) for at in range(3)], r)))
        for at in range(2):
            out.store(state, load(state, at + 1), at)
        out.store(state, made, 2)
        return made

    def _skip(self, out: Text) -> None:
        """For each bit of the numbers to skip: the power's polynomial where it is set."""
        trip, apply = out.inner(), out.inner()
        for state, power, r in zip(self.states, self.powers, RECURRENCES, strict=True):
            _apply(state, power, r, apply)
        trip.branch(compare("ne", load(self.skip) & u64(1), u64(0)), apply)
        trip.store(self.skip, load(self.skip) >> u64(1))
        for power, r in zip(self.powers, RECURRENCES, strict=True):
            given: list[Expr] = [trip.let("c", cast(load(power, at), UINT64)) for at in range(3)]
            for at, c in enumerate(_square(given, r, trip.let)):
                trip.store(power, low(c), at)
        out.while_(compare("ne", load(self.skip), u64(0)), trip)


def _times(a: Expr, b: Expr, m: int) -> Expr:
    """a·b modulo m, of factors below 2^32."""
    return binary("floormod", a * b, u64(m))


def _following(u: list[Expr], r: Recurrence) -> Expr:
    """The term after three. The products of the small coefficients sum up without overflow."""
    total = u64(r.negative) * (u64(r.m) - u[0])
    for term, k in zip(u[1:], (r.b, r.c), strict=True):
        total = total + term * u64(k) if k else total
    return binary("floormod", total, u64(r.m))


def _apply(state: Buffer, power: Buffer, r: Recurrence, out: Text) -> None:
    u: list[Expr] = [out.let("u", cast(load(state, at), UINT64)) for at in range(3)]
    for _ in range(2):
        u.append(out.let("u", _following(u[-3:], r)))
    for at in range(3):
        total = u64(0)
        for n in range(3):
            total = total + _times(cast(load(power, n), UINT64), u[at + n], r.m)
        out.store(state, low(binary("floormod", total, u64(r.m))), at)


def _square(c: list[Expr], r: Recurrence, let: Callable[[str, Expr], Expr]) -> list[Expr]:
    """The square of c0 + c1·x + c2·x², reduced."""

    def summed(terms: list[Expr]) -> Expr:
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return let("c", binary("floormod", total, u64(r.m)))

    def times(a: Expr, b: Expr) -> Expr:
        return _times(a, b, r.m)

    wide = [
        let("c", times(c[0], c[0])),
        summed([times(c[0], c[1])] * 2),
        summed([times(c[0], c[2])] * 2 + [times(c[1], c[1])]),
        summed([times(c[1], c[2])] * 2),
        let("c", times(c[2], c[2])),
    ]
    for top in (4, 3):
        for at, k in enumerate(r.next):
            if k:
                wide[top - 3 + at] = summed([wide[top - 3 + at], times(wide[top], u64(k))])
    return wide[:3]


def power_of_two(n: int, r: Recurrence) -> list[int]:
    """The coefficients of x^(2^n) modulo the recurrence's characteristic polynomial, from the constant one."""
    c = [0, 1, 0]
    for _ in range(n):
        wide = [sum(c[i] * c[k - i] for i in range(3) if 0 <= k - i < 3) for k in range(5)]
        for top in (4, 3):
            for at, k in enumerate(r.next):
                wide[top - 3 + at] += wide[top] * k
        c = [w % r.m for w in wide[:3]]
    return c
