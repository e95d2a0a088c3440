"""T.rng_*: random numbers of each thread, by cuRAND's generators with its order of draws.
In T.Parallel each thread draws in the order of its own iterations; which those are is the layout of the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..ir.dtype import FLOAT32, FLOAT64, INT32, UINT64, DType
from ..ir.expr import Buffer, Expr, as_expr, cast, compare, select
from ..ir.mathfn import math_call
from .builder import RUN_TIME, Builder, require
from .faults import fault, shown
from .generators.fractions import constant
from .generators.mrg32k3a import Mrg32k3a
from .generators.philox import Philox
from .generators.text import Generator, Text, load, private
from .generators.xorwow import Xorwow
from .launch import get_block_binding, get_thread_binding, get_thread_extent

PHILOX = "curandStatePhilox4_32_10_t"
_GENERATORS: dict[str, Callable[[Builder], Generator]] = {
    PHILOX: Philox, "curandStateXORWOW_t": Xorwow, "curandStateMRG32k3a_t": Mrg32k3a
}  # fmt: skip


@dataclass(eq=False)
class Numbers:
    """A kernel's generator, and its last two normal numbers by dtype; `next`: which of them the next call gives."""

    name: str
    source: Generator
    pairs: dict[DType, Buffer]
    next: dict[DType, Buffer]


def rng_init(seed: Any, seq: Any = None, off: Any = 0, generator: str = PHILOX) -> None:
    """Starts the thread's generator `off` numbers into the sequence `seq` (by default the thread's number in the grid)
    of `seed`. `generator` is a state's name in cuRAND: Philox4_32_10, XORWOW or MRG32k3a."""
    builder = require("T.rng_init")
    if generator not in _GENERATORS:
        names = ", ".join(map(repr, _GENERATORS))
        raise fault(f"T.rng_init: generator={shown(generator)}", f"it is one of {names}", "leave it out: Philox")
    if seq is None:
        seq = cast(get_block_binding(), UINT64) * get_thread_extent() + cast(get_thread_binding(), UINT64)
    numbers = _numbers(builder, generator)
    out = Text(builder)
    given = (cast(as_expr(value), UINT64) for value in (seed, seq, off))
    numbers.source.start(out, *given)
    for at in numbers.next.values():
        out.store(at, as_expr(0, INT32))
    out.emit()


def rng_rand() -> Expr:
    """The thread's next 32-bit word."""
    builder, numbers = _open("T.rng_rand")
    out = Text(builder)
    word = numbers.source.word(out)
    out.emit()
    return word


def rng_rand_float(bit: int = 32, dist: str = "uniform") -> Expr:
    """The thread's next number in (0, 1] (dist="uniform") or of mean 0 and variance 1 ("normal"); `bit` is 32 or 64."""
    builder, numbers = _open("T.rng_rand_float")
    if bit not in (32, 64):
        raise fault(f"T.rng_rand_float: bit={shown(bit)}", "it is 32 or 64", "bit=32")
    if dist not in ("uniform", "normal"):
        raise fault(f"T.rng_rand_float: dist={shown(dist)}", 'it is "uniform" or "normal"', 'dist="uniform"')
    dtype = FLOAT32 if bit == 32 else FLOAT64
    out = Text(builder)
    if dist == "uniform":
        value: Expr = out.let("uniform", numbers.source.uniform(out, dtype))
    else:
        value = _normal(numbers, dtype, out)
    out.emit()
    return value


def _open(what: str) -> tuple[Builder, Numbers]:
    builder = require(what)
    if builder.random is None:
        raise fault(f"{what} before T.rng_init", "T.rng_init starts the generator", "T.rng_init(seed) in the kernel")
    return builder, builder.random


def _numbers(builder: Builder, name: str) -> Numbers:
    """The kernel's numbers from now on: those that are there, started again, or another generator's."""
    there: Numbers | None = builder.random
    if there is not None and there.name == name:
        return there
    if there is not None and builder.within(*RUN_TIME) is not None:
        raise fault(
            f"T.rng_init: {name} in a loop or branch, after {there.name}",
            "which generator a number comes from is known while compiling",
            "start another generator outside loops and branches",
        )
    floats = (FLOAT32, FLOAT64)
    made = Numbers(
        name,
        _GENERATORS[name](builder),
        {d: private(builder, "rng_pair", d, 2) for d in floats},
        {d: private(builder, "rng_next", INT32) for d in floats},
    )
    builder.random = made
    return made


def _normal(numbers: Numbers, dtype: DType, out: Text) -> Expr:
    """Box and Muller's pair: the sine's number first, the cosine's with the next call."""
    pair, next_ = numbers.pairs[dtype], numbers.next[dtype]
    at = out.let("at", load(next_))
    fresh = out.inner()
    unit = fresh.let("unit", numbers.source.uniform(fresh, dtype))
    angle = fresh.let("angle", numbers.source.uniform(fresh, dtype, 2 * math.pi))
    radius = fresh.let("radius", math_call("sqrt", math_call("log", unit) * constant(-2.0, dtype)))
    fresh.store(pair, radius * math_call("sin", angle), 0)
    fresh.store(pair, radius * math_call("cos", angle), 1)
    first = compare("eq", at, as_expr(0, INT32))
    out.branch(first, fresh)
    out.store(next_, as_expr(1, INT32) - at)
    return out.let("normal", select(first, load(pair, 0), load(pair, 1)))
