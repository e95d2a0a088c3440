"""T.alloc_reducer and what updates it: elements that all iterations of a parallel loop combine into.

A loop's updates go to a tile of the loop's shape, one element an iteration, which is then reduced into the reducer: the
kernel holds ordinary fragments and reductions only.
"""

from __future__ import annotations

from typing import Any

from ..ir.arith import substitute
from ..ir.expr import Binary, Buffer, Const, Expr, Load, Var, as_expr, cast, same
from ..ir.node import map_children, map_items, walk
from ..ir.stmt import Alloc, Stmt, Store, whole
from ..ops.copy import Copy
from ..ops.fill import Fill
from ..ops.parallel import Parallel
from ..ops.reduce import Reduce
from ..ops.reduction import combine, identity
from .alloc import alloc_fragment
from .builder import require
from .faults import fault

KINDS = ("sum", "max", "min", "bitand", "bitor", "bitxor")
_OPERATORS = {"add": "sum", "max": "max", "min": "min", "and": "bitand", "or": "bitor", "xor": "bitxor"}


def alloc_reducer(shape: Any, dtype: Any, op: str = "sum", replication: str | None = None) -> Buffer:
    """A tile whose elements gather contributions of all threads by `op` (sum, max, min, bitand, bitor, bitxor).
    `replication` is accepted for TileLang's sake."""
    if op not in KINDS:
        raise fault(f"T.alloc_reducer: op={op!r}", f"it is one of {', '.join(KINDS)}", 'op="sum"')
    made = alloc_fragment(shape, dtype)
    require("T.alloc_reducer").reduced[made] = op
    return made


def reducer_init(reducer: Any, init: Any = None) -> None:
    """Begins to gather: every element becomes `init`, by default the value that changes nothing."""
    builder = require("T.reducer_init")
    op = _op("T.reducer_init", reducer)
    start = identity(op, reducer.dtype) if init is None else cast(as_expr(init, reducer.dtype), reducer.dtype)
    builder.emit(Fill(whole(reducer), start, loc=builder.here))


def reducer_update(place: Any, value: Any) -> None:
    """Combines `value` into an element of a reducer, in T.Parallel."""
    builder = require("T.reducer_update")
    if not isinstance(place, Load):
        raise fault("T.reducer_update of no element", "it takes an element and a value", "T.reducer_update(r[i], x)")
    op = _op("T.reducer_update", place.buffer)
    made = combine(op, place, cast(as_expr(value, place.dtype), place.dtype), False)
    builder.emit(Store(place.buffer, place.indices, made, loc=builder.here))


def finalize_reducer(reducer: Any, dst: Any = None, batch: int = 1) -> None:
    """From here on the reducer holds its result in every thread that asks; `dst` gets a copy."""
    builder = require("T.finalize_reducer")
    _op("T.finalize_reducer", reducer)
    if dst is not None:
        builder.emit(Copy(whole(reducer), whole(dst), loc=builder.here))


def _op(what: str, reducer: Any) -> str:
    op = require(what).reduced.get(reducer) if isinstance(reducer, Buffer) else None
    if op is None:
        raise fault(f"{what} of something else than a reducer", "it works on what T.alloc_reducer made", "")
    return op


def without_reducers(loop: Parallel, reduced: dict[Buffer, str]) -> tuple[Stmt, ...]:
    """The statements that a parallel loop stands for when it updates reducers; the loop alone when it does not."""
    found = [n for n in walk(loop.body) if isinstance(n, Store) and n.buffer in reduced]
    if not found:
        return (loop,)
    before: list[Stmt] = []
    after: list[Stmt] = []
    tiles: dict[Buffer, tuple[Buffer, tuple[Var, ...]]] = {}
    for update in found:
        if update.buffer in tiles:
            continue
        kept = _kept(update, loop)
        order = (*kept, *(v for v in loop.vars if not any(v is k for k in kept)))
        sizes = tuple(_extent(loop, v) for v in order)
        dtype = update.buffer.dtype
        tile = Buffer(f"{update.buffer.name}_parts", sizes, dtype, "fragment", loc=update.loc)
        tiles[update.buffer] = (tile, order)
        op = reduced[update.buffer]
        before += [Alloc(tile, loc=loop.loc), Fill(whole(tile), identity(op, dtype), loc=loop.loc)]
        after += _reductions(tile, kept, update, op, loop)

    def change(s: Any) -> Any:
        if isinstance(s, Store) and s.buffer in tiles:
            tile, order = tiles[s.buffer]
            op = reduced[s.buffer]
            mine = Load(tile, order, loc=s.loc)
            return Store(tile, order, combine(op, mine, _contribution(s, op), False), loc=s.loc)
        return map_children(s, lambda c: change(c) if isinstance(c, Stmt) else c)

    body = map_items(loop.body, change)
    return (*before, Parallel(loop.vars, loop.extents, body, loop.hints, loc=loop.loc), *after)


def _kept(update: Store, loop: Parallel) -> tuple[Var, ...]:
    """The loop variables that are the reducer's indices, in its order."""
    out: list[Var] = []
    for index in update.indices:
        if isinstance(index, Const) and index.value == 0:
            continue
        if not isinstance(index, Var) or not any(index is v for v in loop.vars) or any(index is v for v in out):
            raise fault(
                f"the reducer `{update.buffer.name}` is updated at another place than the loop's indices",
                "its indices are different indices of the T.Parallel loop around it",
                "loop over the reducer's elements and what is combined into them",
                update.loc,
            )
        out.append(index)
    return tuple(out)


def _extent(loop: Parallel, var: Var) -> Any:
    extent = next(e for v, e in zip(loop.vars, loop.extents, strict=True) if v is var)
    return int(extent.value) if isinstance(extent, Const) else extent


def _contribution(s: Store, op: str) -> Expr:
    """What an update `r[i] = r[i] ∘ x` combines into the reducer."""
    value = s.value
    if isinstance(value, Binary) and _OPERATORS.get(value.op) == op:
        for mine, other in ((value.a, value.b), (value.b, value.a)):
            own = isinstance(mine, Load) and mine.buffer is s.buffer and all(map(same, mine.indices, s.indices))
            if own and not any(isinstance(n, Load) and n.buffer is s.buffer for n in walk(other)):
                return other
    raise fault(
        f"an update of the reducer `{s.buffer.name}` that is no {op}",
        "a reducer's element is combined with a value by the reducer's own operation",
        f"T.reducer_update({s.buffer.name}[i], value)",
        s.loc,
    )


def _reductions(tile: Buffer, kept: tuple[Var, ...], update: Store, op: str, loop: Parallel) -> list[Stmt]:
    """The tile reduced over its last dimensions, one after the other, the last one into the reducer."""
    out: list[Stmt] = []
    reducer, loc = update.buffer, loop.loc
    direct = tuple(reducer.shape) == (tuple(tile.shape[: len(kept)]) or (1,))
    while len(tile.shape) > max(1, len(kept) + direct):
        last = len(tile.shape) - 1
        less = Buffer(f"{reducer.name}_less", tuple(tile.shape[:last]), tile.dtype, "fragment", loc=loc)
        out += [Alloc(less, loc=loc), Reduce(op, whole(tile), whole(less), last, loc=loc)]
        tile = less
    if direct and len(tile.shape) > len(kept):
        return [*out, Reduce(op, whole(tile), whole(reducer), len(tile.shape) - 1, False, loc=loc)]
    fresh = {v: Var(v.name, loc=loc) for v in kept}
    if not kept:  # one element, in a reducer of several dimensions
        one = Buffer(f"{reducer.name}_one", (1,), tile.dtype, "fragment", loc=loc)
        out += [Alloc(one, loc=loc), Reduce(op, whole(tile), whole(one), 0, loc=loc)]
        tile, fresh = one, {loop.vars[0]: Var("i", loc=loc)}
    place = tuple(substitute(i, fresh) for i in update.indices)
    made = combine(op, Load(reducer, place), Load(tile, tuple(fresh.values())), False)
    store = Store(reducer, place, made, loc=loc)
    return [*out, Parallel(tuple(fresh.values()), tuple(tile.shape), (store,), (), loc=loc)]
