"""Parallel loops that update reducers, in ordinary terms: the updates of one place go to a tile of the loop's shape,
one element an iteration, and the tile is reduced into the reducer: at T.finalize_reducer when the place is the same in
all trips of the loops around, so that threads are combined once, else behind the loop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..ir.arith import substitute
from ..ir.expr import Binary, Buffer, Const, Expr, Load, Var, same
from ..ir.node import map_children, map_items, walk
from ..ir.stmt import Alloc, For, Let, Stmt, Store, whole
from ..ops.fill import Fill
from ..ops.parallel import Parallel
from ..ops.reduce import Reduce
from ..ops.reduction import combine, identity
from .builder import Builder, Frame
from .faults import fault
from .reducers import Reducer

_OPERATORS = {"add": "sum", "max": "max", "min": "min", "and": "bitand", "or": "bitor", "xor": "bitxor"}


@dataclass(eq=False)
class Parts:
    """The tile that gathers the updates of one place in a reducer: first the loop variables that are indices of the
    place (`kept`), then those that are combined over."""

    update: Store
    op: str
    kept: tuple[Var, ...]
    order: tuple[Var, ...]
    tile: Buffer

    def gathers(self, s: Store) -> bool:
        own = self.update
        return s.buffer is own.buffer and all(map(same, s.indices, own.indices))

    @property
    def loads(self) -> Load:
        return Load(self.tile, self.order, loc=self.update.loc)


def without_reducers(loop: Parallel, builder: Builder) -> tuple[Stmt, ...]:
    """The statements that a parallel loop stands for when it updates reducers; the loop alone when it does not."""
    reduced: dict[Buffer, Reducer] = builder.reduced
    gathered: list[Parts] = []
    for s in walk(loop.body):
        if isinstance(s, Store) and s.buffer in reduced and not any(p.gathers(s) for p in gathered):
            gathered.append(_parts(s, reduced[s.buffer].op, loop))
    if not gathered:
        return (loop,)

    def change(s: Any) -> Any:
        parts = next((p for p in gathered if p.gathers(s)), None) if isinstance(s, Store) else None
        if parts is None:
            return map_children(s, lambda c: change(c) if isinstance(c, Stmt) else c)
        made = combine(parts.op, parts.loads, _contribution(s, parts.op), False)
        return Store(parts.tile, parts.order, made, loc=s.loc)

    body = map_items(loop.body, change)
    before: list[Stmt] = []
    after: list[Stmt] = []
    for p in gathered:
        state = reduced[p.update.buffer]
        if _waits(p, state, loop, builder.frames):
            _begin(p, state)
            state.pending += _reductions(p, loop)
        else:
            before += _empty(p)
            after += _reductions(p, loop)
    return (*before, Parallel(loop.vars, loop.extents, body, loop.hints, loc=loop.loc), *after)


def _waits(parts: Parts, state: Reducer, loop: Parallel, frames: list[Frame]) -> bool:
    """Whether the parts gather over several trips of a loop before they are combined."""
    fixed = all(isinstance(i, Const) or _among(i, loop.vars) for i in parts.update.indices)
    return fixed and state.reaches(frames) and state.loops_since(frames) > 0


def _begin(parts: Parts, state: Reducer) -> None:
    """The tile is allocated and emptied where its reducer began."""
    body = state.scope[-1].body
    at = next(n for n, s in enumerate(body) if s is state.start) + 1
    body[at:at] = _empty(parts)


def _empty(parts: Parts) -> list[Stmt]:
    tile, loc = parts.tile, parts.update.loc
    return [Alloc(tile, loc=loc), Fill(whole(tile), identity(parts.op, tile.dtype), loc=loc)]


def _parts(update: Store, op: str, loop: Parallel) -> Parts:
    kept = _kept(update, loop)
    order = (*kept, *(v for v in loop.vars if not _among(v, kept)))
    sizes = tuple(_extent(loop, v) for v in order)
    name = f"{update.buffer.name}_parts"
    return Parts(update, op, kept, order, Buffer(name, sizes, update.buffer.dtype, "fragment", loc=update.loc))


def _among(var: object, others: Iterable[Var]) -> bool:
    return any(var is v for v in others)


def _kept(update: Store, loop: Parallel) -> tuple[Var, ...]:
    """The loop variables that are the reducer's indices, in its order; the other indices are the same in all
    iterations."""
    inner = [n.var for n in walk(loop.body) if isinstance(n, For | Let)]
    written = [n.buffer for n in walk(loop.body) if isinstance(n, Store)]
    out: list[Var] = []
    for index in update.indices:
        if _among(index, loop.vars) and not _among(index, out):
            out.append(index)  # type: ignore[arg-type]
            continue
        found = list(walk(index))
        varies = any(_among(n, (*loop.vars, *inner)) for n in found)
        if varies or any(isinstance(n, Load) and n.buffer in written for n in found):
            raise fault(
                f"the reducer `{update.buffer.name}` is updated at another place than the loop's indices",
                "an index of it is an index of the T.Parallel loop around it, each once, or the same in all iterations",
                "loop over the reducer's elements and what is combined into them",
                update.loc,
            )
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


def _reductions(parts: Parts, loop: Parallel) -> list[Stmt]:
    """The tile reduced over its last dimensions, one after the other, the last one into the reducer."""
    out: list[Stmt] = []
    update, kept, op, tile, loc = parts.update, parts.kept, parts.op, parts.tile, loop.loc
    reducer = update.buffer
    direct = _covers(update, parts)
    while len(tile.shape) > max(1, len(kept) + direct):
        last = len(tile.shape) - 1
        less = Buffer(f"{reducer.name}_less", tuple(tile.shape[:last]), tile.dtype, "fragment", loc=loc)
        out += [Alloc(less, loc=loc), Reduce(op, whole(tile), whole(less), last, loc=loc)]
        tile = less
    if direct and len(tile.shape) > len(kept):
        return [*out, Reduce(op, whole(tile), whole(reducer), len(tile.shape) - 1, False, loc=loc)]
    fresh = {v: Var(v.name, loc=loc) for v in kept}
    if not kept:
        one = Buffer(f"{reducer.name}_one", (1,), tile.dtype, "fragment", loc=loc)
        out += [Alloc(one, loc=loc), Reduce(op, whole(tile), whole(one), 0, loc=loc)]
        tile, fresh = one, {loop.vars[0]: Var("i", loc=loc)}
    place = tuple(substitute(i, fresh) for i in update.indices)
    made = combine(op, Load(reducer, place), Load(tile, tuple(fresh.values())), False)
    store = Store(reducer, place, made, loc=loc)
    return [*out, Parallel(tuple(fresh.values()), tuple(tile.shape), (store,), (), loc=loc)]


def _covers(update: Store, parts: Parts) -> bool:
    """Whether the kept dimensions are the whole reducer, so that the last reduction may write it."""
    kept = len(parts.kept)
    zeros = all(isinstance(i, Const) and i.value == 0 for i in update.indices)
    if tuple(update.buffer.shape) != (tuple(parts.tile.shape[:kept]) or (1,)):
        return False
    return len(update.indices) == kept or (kept == 0 and zeros)
