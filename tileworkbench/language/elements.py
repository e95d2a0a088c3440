"""Small operations that are loops or expressions over elements: T.transpose, T.any_of, packed atomics, coordinates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from ..errors import ShapeError
from ..ir.expr import Expr, Load, Var, as_expr, binary, cast, compare, logical, select, truth
from ..ir.stmt import If, Region, Stmt, Store
from ..ops.parallel import Parallel
from .atomic import update
from .builder import require
from .faults import fault
from .lanes import Lanes
from .linear import difference
from .regions import equal, to_region
from .regions import show as show_extent
from .remarks import remarks

_MOST = 256  # elements that one any_of or all_of may test


def transpose(src: Any, dst: Any, annotations: Any = None) -> None:
    """dst[…, j, i] = src[…, i, j]: the last two dimensions change places. Elements beyond the end of the source are 0,
    those beyond the end of the destination are left out, as in T.copy."""
    builder = require("T.transpose")
    remarks(annotations)
    a, b = to_region(src, "T.transpose: the source"), to_region(dst, "T.transpose: the destination")
    rank = len(a.extents)
    order = (*range(rank - 2), rank - 1, rank - 2)
    if rank < 2 or len(b.extents) != rank or not all(equal(a.extents[d], b.extents[n]) for n, d in enumerate(order)):
        raise ShapeError(
            f"T.transpose of `{a.buffer.name}` {a.extents} into `{b.buffer.name}` {b.extents}",
            rule="both have the same dimensions, at least two, and the destination's last two are exchanged",
            fix="allocate the destination with the exchanged shape",
        )
    loc = builder.here
    names = ("i", "j", "k", "l", "m")
    vars = tuple(Var(builder.unique(names[d] if d < len(names) else f"i{d}"), loc=loc) for d in range(rank))
    value = Load(a.buffer, tuple(map(_plus, a.starts, vars)), loc=loc)
    place = tuple(_plus(start, vars[d]) for start, d in zip(b.starts, order, strict=True))
    held = select(inside, value, 0) if (inside := _within(a, value.indices)) is not None else value
    store: Stmt = Store(b.buffer, place, cast(held, b.buffer.dtype), loc=loc)
    reached = _within(b, place)
    body = (store,) if reached is None else (If(reached, (store,), loc=loc),)
    builder.emit(Parallel(vars, tuple(a.extents), body, (), loc=loc))


def _plus(start: Expr, var: Var) -> Expr:
    return binary("add", start, var)


def _within(region: Region, indices: tuple[Expr, ...]) -> Expr | None:
    """The condition under which indices are inside the region's buffer; None where its box is known to be."""
    made: Expr | None = None
    for start, extent, index, size in zip(region.starts, region.extents, indices, region.buffer.shape, strict=True):
        over = difference(binary("add", start, extent), size)
        if isinstance(over, int) and over <= 0:
            continue
        test = compare("lt", index, size)
        made = test if made is None else logical("land", made, test)
    return made


def _test(what: str, op: str, buffer: Any) -> Expr:
    """`or` / `and` over the elements of a buffer or region."""
    region = to_region(buffer, what)
    extents = [e for e in region.extents if isinstance(e, int)]
    if len(extents) < len(region.extents) or math.prod(extents) > _MOST:
        raise fault(
            f"{what} of extents ({', '.join(map(show_extent, region.extents))})",
            f"it tests at most {_MOST} elements, as many as is known while compiling",
            "slice a part, or reduce with T.reduce_max",
        )
    tests = [
        truth(
            Load(region.buffer, tuple(binary("add", start, n) for start, n in zip(region.starts, offsets, strict=True)))
        )
        for offsets in itertools.product(*map(range, extents))
    ]
    while len(tests) > 1:  # neighbours are joined, so that the expression is as deep as the logarithm of their number
        pairs = [logical(op, a, b) for a, b in zip(tests[::2], tests[1::2], strict=False)]
        tests = pairs + tests[len(tests) & ~1 :]
    return tests[0] if tests else as_expr(op == "land")


def any_of(buffer: Any) -> Expr:
    """Whether any element of a tile or of a part of it is not zero."""
    return _test("T.any_of", "lor", buffer)


def all_of(buffer: Any) -> Expr:
    """Whether all elements of a tile or of a part of it are not zero."""
    return _test("T.all_of", "land", buffer)


def _packed(lanes: int) -> Callable[..., Any]:
    def made(dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False) -> Any:
        what = f"T.atomic_addx{lanes}"
        pairs = zip(_row(what, dst, lanes), _row(what, value, lanes, computed=True), strict=True)
        old = [update("add", place, operand, memory_order, return_prev) for place, operand in pairs]
        return Lanes(old) if return_prev else None

    made.__name__ = made.__qualname__ = f"atomic_addx{lanes}"
    made.__doc__ = f"""Adds {lanes} neighbouring elements, beginning at `value`, to those at `dst`, each atomically;
    `return_prev` gives the {lanes} old values. Both may be vectors of {lanes}, such as elements at a T.Ramp."""
    return made


def _row(what: str, value: Any, lanes: int, computed: bool = False) -> list[Expr]:
    """The elements of an operand; `computed` ones may be any values."""
    if isinstance(value, Lanes) and len(value) == lanes and (computed or all(isinstance(e, Load) for e in value)):
        return list(value)
    if isinstance(value, Lanes):
        raise fault(
            f"{what}: an operand is a vector of {len(value)}",
            f"it has {lanes} lanes, and the destination's are elements",
            f"write `A[T.Ramp(i, 1, {lanes})]`",
        )
    region = to_region(value, what)
    *front, last = region.extents
    starts = isinstance(value, Load | Region) and last == 1
    if not (starts or last == lanes) or any(e != 1 for e in front):
        raise fault(
            f"{what}: an operand is not {lanes} neighbouring elements",
            "it is the first of them, or a row of as many",
            f"write `A[i, j]` or `A[i, j : j + {lanes}]`",
        )
    first = region.starts[-1]
    return [Load(region.buffer, (*region.starts[:-1], binary("add", first, n))) for n in range(lanes)]


atomic_addx2, atomic_addx4 = _packed(2), _packed(4)


def index_to_coordinates(index: Any, shape: Any) -> list[Any]:
    """The coordinates of a row-major linear index."""
    out: list[Any] = []
    rest = index
    for extent in reversed(list(shape)[1:]):
        out.append(rest % extent)
        rest = rest // extent
    return [rest, *reversed(out)]
