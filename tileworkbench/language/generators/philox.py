"""Philox4x32-10, with cuRAND's order of draws: a counter that ten rounds of multiplications scramble.

Its state is how many 32-bit words have been drawn, and the four words of the block that the next one lies in.
"""

from __future__ import annotations

from ...ir.dtype import INT32, UINT32, UINT64, DType
from ...ir.expr import Expr, as_expr, cast, compare, select
from ..builder import Builder
from .fractions import fraction
from .text import Text, high, load, low, private, u32, u64

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)  # of the key, from round to round
_MASK = 0xFFFFFFFF


class Philox:
    """The counter and its block of four words."""

    def __init__(self, builder: Builder) -> None:
        self.drawn, self.words = private(builder, "rng_drawn", UINT64), private(builder, "rng_words", UINT32, 4)
        self.seed, self.sequence = private(builder, "rng_seed", UINT64), private(builder, "rng_sequence", UINT64)

    def start(self, out: Text, seed: Expr, sequence: Expr, offset: Expr) -> None:
        """Starts the thread's numbers anew."""
        for place, value in ((self.seed, seed), (self.sequence, sequence), (self.drawn, offset)):
            out.store(place, value)
        self._refill(out)

    def word(self, out: Text) -> Expr:
        """The next 32 random bits."""
        at = out.let("at", cast(load(self.drawn) & u64(3), INT32))
        word: Expr = load(self.words, 3)
        for n in (2, 1, 0):
            word = select(compare("eq", at, as_expr(n)), load(self.words, n), word)
        word = out.let("drawn", word)
        out.store(self.drawn, load(self.drawn) + u64(1))
        fill = out.inner()
        self._refill(fill)
        out.branch(compare("eq", at, as_expr(3)), fill)
        return word

    def uniform(self, out: Text, dtype: DType, scale: float = 1.0) -> Expr:
        """A number in (0, 1], times `scale`."""
        return fraction(self, out, dtype, scale)

    def _refill(self, out: Text) -> None:
        """The four words of the block that the next word lies in."""
        seed, sequence = load(self.seed), load(self.sequence)
        block = out.let("block", load(self.drawn) >> u64(2))
        counter = [low(block), high(block), low(sequence), high(sequence)]
        for n in range(_ROUNDS):
            keys = [half(seed) + u32(n * step & _MASK) for half, step in zip((low, high), _STEPS, strict=True)]
            products = [
                out.let("product", cast(c, UINT64) * u64(m))
                for c, m in zip((counter[0], counter[2]), _MULTIPLIERS, strict=True)
            ]
            first = out.let("word", high(products[1]) ^ counter[1] ^ keys[0])
            third = out.let("word", high(products[0]) ^ counter[3] ^ keys[1])
            counter = [first, low(products[1]), third, low(products[0])]
        for at, word in enumerate(counter):
            out.store(self.words, word, at)
