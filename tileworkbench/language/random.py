"""T.rng_*: random numbers of each thread, by Philox4x32-10 with cuRAND's order of draws.
In T.Parallel each thread draws in the order of its own iterations; which those are is the layout of the loop.

A generator is a counter that ten rounds of multiplications scramble, so its state is ordinary private variables: how
many 32-bit words have been drawn, and the four words of the block that the next one lies in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import TargetError
from ..ir.dtype import FLOAT32, FLOAT64, INT32, UINT32, UINT64, DType
from ..ir.expr import Buffer, Expr, Load, Var, as_expr, cast, compare, select
from ..ir.mathfn import math_call
from ..ir.stmt import Alloc, If, Let, Stmt, Store
from .builder import Builder, require
from .faults import fault, shown
from .launch import get_block_binding, get_thread_binding, get_thread_extent

PHILOX = "curandStatePhilox4_32_10_t"
_OTHERS = ("curandStateMRG32k3a_t", "curandStateXORWOW_t")
_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)  # of the key, from round to round
_MASK = 0xFFFFFFFF


@dataclass(eq=False)
class Generator:
    """The private variables of a kernel's generator. `pairs`: the last two normal numbers, by dtype, and `next`: which
    of them the next call gives."""

    drawn: Buffer
    words: Buffer
    seed: Buffer
    sequence: Buffer
    pairs: dict[DType, Buffer]
    next: dict[DType, Buffer]


def rng_init(seed: Any, seq: Any = None, off: Any = 0, generator: str = PHILOX) -> None:
    """Starts the thread's generator `off` words into the sequence `seq` (by default the thread's number in the grid) of
    `seed`."""
    builder = require("T.rng_init")
    if generator in _OTHERS:
        raise TargetError(
            f"T.rng_init: {generator}", rule="the generator built here is Philox", fix=f'generator="{PHILOX}"'
        )
    if generator != PHILOX:
        raise fault(f"T.rng_init: generator={shown(generator)}", f"it is {PHILOX!r}", "leave it out")
    if seq is None:
        seq = cast(get_block_binding(), UINT64) * get_thread_extent() + cast(get_thread_binding(), UINT64)
    if builder.random is None:
        builder.random = _generator(builder)
    g: Generator = builder.random
    out = _Text(builder)
    for place, value in ((g.seed, seed), (g.sequence, seq), (g.drawn, off)):
        out.store(place, cast(as_expr(value), UINT64))
    for at in g.next.values():
        out.store(at, as_expr(0, INT32))
    _refill(g, out)
    out.emit()


def rng_rand() -> Expr:
    """The thread's next 32-bit word."""
    builder, g = _open("T.rng_rand")
    out = _Text(builder)
    word = _draw(g, out)
    out.emit()
    return word


def rng_rand_float(bit: int = 32, dist: str = "uniform") -> Expr:
    """The thread's next number in (0, 1] (dist="uniform") or of mean 0 and variance 1 ("normal"); `bit` is 32 or 64."""
    builder, g = _open("T.rng_rand_float")
    if bit not in (32, 64):
        raise fault(f"T.rng_rand_float: bit={shown(bit)}", "it is 32 or 64", "bit=32")
    if dist not in ("uniform", "normal"):
        raise fault(f"T.rng_rand_float: dist={shown(dist)}", 'it is "uniform" or "normal"', 'dist="uniform"')
    dtype = FLOAT32 if bit == 32 else FLOAT64
    out = _Text(builder)
    value = _uniform(g, dtype, out) if dist == "uniform" else _normal(g, dtype, out)
    out.emit()
    return value


class _Text:
    """Statements being written."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.made: list[Stmt] = []

    def let(self, name: str, value: Expr) -> Var:
        var = Var(self.builder.unique(name), dtype=value.dtype, loc=self.builder.here)
        self.builder.define(var)
        self.made.append(Let(var, value, loc=self.builder.here))
        return var

    def store(self, place: Buffer, value: Expr, at: int = 0) -> None:
        self.made.append(Store(place, (as_expr(at),), value, loc=self.builder.here))

    def branch(self, cond: Expr, then: _Text) -> None:
        self.made.append(If(cond, tuple(then.made), (), loc=self.builder.here))

    def emit(self) -> None:
        for s in self.made:
            self.builder.emit(s)


def _open(what: str) -> tuple[Builder, Generator]:
    builder = require(what)
    if builder.random is None:
        raise fault(f"{what} before T.rng_init", "T.rng_init starts the generator", "T.rng_init(seed) in the kernel")
    return builder, builder.random


def _generator(builder: Builder) -> Generator:
    """Its variables, allocated where the kernel begins: a generator may be started in a branch and used after it."""
    kernel = next(f for f in builder.frames if f.kind == "kernel")

    def private(name: str, dtype: DType, size: int = 1) -> Buffer:
        made = Buffer(builder.unique(name), (size,), dtype, "local", None, (("sequential", True),), loc=builder.here)
        kernel.body.insert(0, Alloc(made, loc=builder.here))
        kernel.defined.append(made)
        return made

    floats = (FLOAT32, FLOAT64)
    return Generator(
        private("rng_drawn", UINT64), private("rng_words", UINT32, 4), private("rng_seed", UINT64),
        private("rng_sequence", UINT64), {d: private("rng_pair", d, 2) for d in floats},
        {d: private("rng_next", INT32) for d in floats},
    )  # fmt: skip


def _low(x: Expr) -> Expr:
    return cast(x, UINT32)


def _high(x: Expr) -> Expr:
    return cast(x >> as_expr(32, UINT64), UINT32)


def _load(b: Buffer, at: int = 0) -> Load:
    return Load(b, (as_expr(at),))


def _refill(g: Generator, out: _Text) -> None:
    """The four words of the block that the next word lies in."""
    seed, sequence = _load(g.seed), _load(g.sequence)
    block = out.let("block", _load(g.drawn) >> as_expr(2, UINT64))
    counter = [_low(block), _high(block), _low(sequence), _high(sequence)]
    for n in range(_ROUNDS):
        keys = [
            half(seed) + as_expr(n * step & _MASK, UINT32) for half, step in zip((_low, _high), _STEPS, strict=True)
        ]
        products = [
            out.let("product", cast(c, UINT64) * as_expr(m, UINT64))
            for c, m in zip((counter[0], counter[2]), _MULTIPLIERS, strict=True)
        ]
        first = out.let("word", _high(products[1]) ^ counter[1] ^ keys[0])
        third = out.let("word", _high(products[0]) ^ counter[3] ^ keys[1])
        counter = [first, _low(products[1]), third, _low(products[0])]
    for at, word in enumerate(counter):
        out.store(g.words, word, at)


def _draw(g: Generator, out: _Text) -> Expr:
    at = out.let("at", cast(_load(g.drawn) & as_expr(3, UINT64), INT32))
    word: Expr = _load(g.words, 3)
    for n in (2, 1, 0):
        word = select(compare("eq", at, as_expr(n)), _load(g.words, n), word)
    word = out.let("drawn", word)
    out.store(g.drawn, _load(g.drawn) + as_expr(1, UINT64))
    fill = _Text(out.builder)
    _refill(g, fill)
    out.branch(compare("eq", at, as_expr(3)), fill)
    return word


def _uniform(g: Generator, dtype: DType, out: _Text) -> Expr:
    return out.let("uniform", _fraction(_bits(g, dtype, out), dtype))


def _bits(g: Generator, dtype: DType, out: _Text) -> Expr:
    """32 random bits for a float32, 53 of two words for a float64."""
    first = _draw(g, out)
    if dtype is FLOAT32:
        return first
    return cast(first, UINT64) ^ (cast(_draw(g, out), UINT64) << as_expr(21, UINT64))


def _constant(x: float, dtype: DType) -> Expr:
    return cast(as_expr(x, dtype), dtype)


def _fraction(bits: Expr, dtype: DType, scale: float = 1.0) -> Expr:
    """The middle of the bits' interval in (0, scale)."""
    step = scale * 2.0 ** -(32 if dtype is FLOAT32 else 53)
    return cast(bits, dtype) * _constant(step, dtype) + _constant(step / 2, dtype)


def _normal(g: Generator, dtype: DType, out: _Text) -> Expr:
    """Box and Muller's pair: the sine's number first, the cosine's with the next call."""
    pair, next_ = g.pairs[dtype], g.next[dtype]
    at = out.let("at", _load(next_))
    fresh = _Text(out.builder)
    radius = _fraction(_bits(g, dtype, fresh), dtype)
    angle = fresh.let("angle", _fraction(_bits(g, dtype, fresh), dtype, 2 * math.pi))
    radius = fresh.let("radius", math_call("sqrt", math_call("log", radius) * _constant(-2.0, dtype)))
    fresh.store(pair, radius * math_call("sin", angle), 0)
    fresh.store(pair, radius * math_call("cos", angle), 1)
    first = compare("eq", at, as_expr(0, INT32))
    out.branch(first, fresh)
    out.store(next_, as_expr(1, INT32) - at)
    return out.let("normal", select(first, _load(pair, 0), _load(pair, 1)))
