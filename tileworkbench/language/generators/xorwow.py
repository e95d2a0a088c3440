"""XORWOW (Marsaglia 2003): a shift register of five words and a counter, started and skipped ahead as cuRAND does.

A sequence begins 2^67 words after the one before. Skipping n words applies the register's step A n times: that is
p(A) with the polynomial p = x^n modulo the characteristic polynomial of A, over the field of two elements. p is
multiplied together from the powers x^(2^i) of n's bits, each the square of the one before.
"""

from __future__ import annotations

from functools import cache, reduce

from ...ir.dtype import INT32, UINT32, UINT64, DType
from ...ir.expr import Expr, as_expr, cast, compare, select
from ..builder import Builder
from .fractions import fraction
from .text import Text, high, load, low, private, u32, u64

_WORDS = 5
_BITS = 32 * _WORDS
_MASK = 0xFFFFFFFF
_COUNT = 362437  # the counter's step
# The characteristic polynomial of the step, one bit a power: x^160 + x^139 + … + 1.
POLYNOMIAL = 0x1_00000F0E_0F3C0035_00062121_08610030_00060001
_POWERS = tuple(e for e in range(_BITS) if POLYNOMIAL >> e & 1)
_SEQUENCE = 67  # of the words between two sequences, the power of two


class Xorwow:
    """The register and the counter that is added to its last word."""

    def __init__(self, builder: Builder) -> None:
        self.register, self.count = private(builder, "rng_register", UINT32, 5), private(builder, "rng_count", UINT32)
        self.power, self.total = private(builder, "rng_power", UINT32, 5), private(builder, "rng_total", UINT32, 5)
        self.skip = private(builder, "rng_skip", UINT64)

    def start(self, out: Text, seed: Expr, sequence: Expr, offset: Expr) -> None:
        """Starts the thread's numbers anew."""
        # cuRAND's mixing of the seed into Marsaglia's first register.
        a = out.let("mixed", (low(seed) ^ u32(0xAAD26B49)) * u32(1099087573))
        b = out.let("mixed", (high(seed) ^ u32(0xF7DCEFDD)) * u32(2591861531))
        first = (u32(123456789) + a, u32(362436069) ^ a, u32(521288629) + b, u32(88675123) ^ b, u32(5783321) + a)
        for at, word in enumerate(first):
            out.store(self.register, word, at)
        # The words between two sequences are a multiple of 2^32, so only the offset moves the counter.
        out.store(self.count, u32(6615241) + b + a + u32(_COUNT) * low(offset))
        which = out.index("which")
        skip = out.inner()
        of_sequences = compare("eq", which, as_expr(0, INT32))
        skip.store(self.skip, select(of_sequences, sequence, offset))
        for at in range(_WORDS):
            between = _power_of_two(_SEQUENCE) >> 32 * at & _MASK
            skip.store(self.power, select(of_sequences, u32(between), u32(2 if at == 0 else 0)), at)
        self._skip(skip)
        out.repeat(which, 2, skip)

    def word(self, out: Text) -> Expr:
        """The next 32 random bits."""
        self._step(out)
        out.store(self.count, load(self.count) + u32(_COUNT))
        return out.let("drawn", load(self.register, 4) + load(self.count))

    def uniform(self, out: Text, dtype: DType, scale: float = 1.0) -> Expr:
        """A number in (0, 1], times `scale`."""
        return fraction(self, out, dtype, scale)

    def _step(self, out: Text) -> None:
        v = self.register
        first = out.let("first", load(v) ^ (load(v) >> u32(2)))
        last = out.let("last", load(v, 4) ^ (load(v, 4) << u32(4)) ^ first ^ (first << u32(1)))
        for at in range(_WORDS - 1):
            out.store(v, load(v, at + 1), at)
        out.store(v, last, 4)

    def _skip(self, out: Text) -> None:
        """For each bit of the words to skip: the power's polynomial of the step where it is set."""
        trip, apply = out.inner(), out.inner()
        self._apply(apply)
        trip.branch(compare("ne", load(self.skip) & u64(1), u64(0)), apply)
        trip.store(self.skip, load(self.skip) >> u64(1))
        for at, word in enumerate(_square([load(self.power, at) for at in range(_WORDS)], trip)):
            trip.store(self.power, word, at)
        out.while_(compare("ne", load(self.skip), u64(0)), trip)

    def _apply(self, out: Text) -> None:
        """The sum of the register's next 160 states that `power` selects."""
        total, v = self.total, self.register
        for at in range(_WORDS):
            out.store(total, u32(0), at)
        for word in range(_WORDS):
            k = out.index("k")
            body = out.inner()
            mask = body.let("mask", u32(0) - (load(self.power, word) >> cast(k, UINT32) & u32(1)))
            for at in range(_WORDS):
                body.store(total, load(total, at) ^ (load(v, at) & mask), at)
            self._step(body)
            out.repeat(k, 32, body)
        for at in range(_WORDS):
            out.store(v, load(total, at), at)


def _square(words: list[Expr], out: Text) -> list[Expr]:
    """The square of a polynomial: its bits spread apart, then the words above 160 bits reduced, highest first."""
    wide: list[Expr] = []
    for word in words:
        wide += [_spread(word & u32(0xFFFF), out), _spread(word >> u32(16), out)]
    for top in range(2 * _WORDS - 1, _WORDS - 1, -1):
        # x^139 is the next power below x^160: what a word's reduction puts back into the word is reduced at once.
        again = [wide[top] >> u32(_BITS - e) for e in _POWERS if e > _BITS - 32]
        word = out.let("over", _sum([wide[top], *again]))
        for at in range(_WORDS):
            parts = [_shifted(word, e - 32 * at) for e in _POWERS if -32 < e - 32 * at < 32]
            wide[top - _WORDS + at] = out.let("square", _sum([wide[top - _WORDS + at], *parts]))
    return wide[:_WORDS]


def _spread(half: Expr, out: Text) -> Expr:
    """The bits of 16, one apart."""
    for by, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        half = out.let("spread", (half | (half << u32(by))) & u32(mask))
    return half


def _shifted(word: Expr, by: int) -> Expr:
    return word << u32(by) if by > 0 else word >> u32(-by) if by < 0 else word


def _sum(terms: list[Expr]) -> Expr:
    return reduce(lambda a, b: a ^ b, terms)


@cache
def _power_of_two(n: int) -> int:
    """x^(2^n) modulo the characteristic polynomial."""
    found = 2
    for _ in range(n):
        found = sum(1 << 2 * e for e in range(_BITS) if found >> e & 1)
        for e in range(2 * _BITS, _BITS - 1, -1):
            if found >> e & 1:
                found ^= POLYNOMIAL << e - _BITS
    return found
