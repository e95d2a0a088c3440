"""How a parallel element loop is spread over threads, and where its fragment operands then are.

A loop takes the layout of a fragment that it walks element by element; without one it is spread for wide, coalesced
accesses. Everything is decided by tables over the whole loop, never by the form of an index.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ..errors import InternalError, LanguageError
from ..ir.arith import mentions
from ..ir.evaluate import evaluate, is_index_arithmetic
from ..ir.expr import Binary, Buffer, Const, Expr, Load, Var, logical_not
from ..ir.node import Node, children, walk
from ..ir.stmt import For, If, Stmt, Store
from ..layout import (
    Distribution,
    Fragment,
    LinearLoop,
    loop_layout,
    padded_loop,
    permute_dims,
    reduce_dim,
    replicated,
    same,
)
from .atomic_element import AtomicElement

VECTOR_BYTES = 16
REPLICATED_ELEMENTS = 64


@dataclass(frozen=True)
class Use:
    """One fragment access in a loop body, with the serial loops around it and the conditions under which it happens."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    writes: bool
    inner: tuple[For, ...] = ()
    guards: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Nest:
    """A parallel loop nest with what its layout depends on."""

    vars: tuple[Var, ...]
    extents: tuple[int, ...]
    uses: tuple[Use, ...]
    memory: tuple[Use, ...]  # shared and global accesses

    @staticmethod
    def of(loop_vars: Sequence[Var], extents: Sequence[Any], body: tuple[Stmt, ...]) -> Nest:
        sizes = tuple(_static(e) for e in extents)
        found = list(_uses(body, (), ()))
        return Nest(
            tuple(loop_vars),
            sizes,
            tuple(u for u in found if u.buffer.space == "fragment"),
            tuple(u for u in found if u.buffer.space in ("shared", "global")),
        )


    def updates_memory(self) -> bool:
        """True when iterations change memory that they read: replicas of one would read what another has changed."""
        written = {u.buffer for u in self.memory if u.writes}
        return any(u.buffer in written and not u.writes for u in self.memory)

    def covers(self, s: Store) -> bool:
        """True when the store, done in every iteration, reaches every element of its buffer."""
        return _identity(Use(s.buffer, s.indices, True), self) is not None


def _static(extent: Any) -> int:
    if isinstance(extent, Const):
        return int(extent.value)
    if isinstance(extent, int):
        return extent
    raise LanguageError(
        "the extent of a T.Parallel loop is known only at run time",
        rule="parallel loops are spread over threads while compiling, so their extents are constants",
        fix="loop over a constant tile and guard the body with an if",
        loc=getattr(extent, "loc", None),
    )


def _uses(n: Any, inner: tuple[For, ...], guards: tuple[Expr, ...]) -> Iterator[Use]:
    if isinstance(n, tuple):
        for item in n:
            yield from _uses(item, inner, guards)
        return
    if isinstance(n, If):
        yield from _uses(n.cond, inner, guards)
        yield from _uses(n.then, inner, (*guards, n.cond))
        yield from _uses(n.orelse, inner, (*guards, logical_not(n.cond)))
        return
    if isinstance(n, Load):
        yield Use(n.buffer, n.indices, False, inner, guards)
    elif isinstance(n, (Store, AtomicElement)):
        yield Use(n.buffer, n.indices, True, inner, guards)
    deeper = (*inner, n) if isinstance(n, For) else inner
    if isinstance(n, Node) and not isinstance(n, Buffer):
        for child in children(n):
            yield from _uses(child, deeper, guards)


def _identity(use: Use, nest: Nest) -> tuple[int, ...] | None:
    """Which loop dimension each index is, when all indices are different plain loop variables over whole dimensions."""
    dims = []
    places = {v: d for d, v in enumerate(nest.vars)}  # `==` on variables builds IR, so tuples cannot be searched
    for index, extent in zip(use.indices, use.buffer.shape, strict=True):
        if isinstance(index, Const) and index.value == 0 and extent == 1:
            dims.append(-1)
        elif isinstance(index, Var) and index in places and nest.extents[places[index]] == extent:
            dims.append(places[index])
        else:
            return None
    real = [d for d in dims if d >= 0]
    return tuple(dims) if len(set(real)) == len(real) else None


def _unmoved(use: Use, nest: Nest) -> Use:
    """The access without what is added to its loop variables."""
    return replace(use, indices=tuple(_variable(i, nest) for i in use.indices))


def _variable(index: Expr, nest: Nest) -> Expr:
    if isinstance(index, Binary) and index.op in ("add", "sub") and not mentions(index.b, nest.vars):
        return _variable(index.a, nest)
    return index


def settled(nest: Nest, known: Mapping[Buffer, Any], hint: Distribution | None = None) -> Distribution | None:
    """The loop's layout where the user or the known fragments fix it, else None."""
    if hint is not None:
        return hint
    candidates: list[Distribution | None] = []
    for use in sorted(nest.uses, key=lambda u: not u.writes):
        layout, dims = known.get(use.buffer), _identity(use, nest)
        if layout is not None and dims is not None and len([d for d in dims if d >= 0]) == len(nest.vars):
            candidates.append(_as_loop(layout, dims, nest))
    alone = nest.updates_memory()
    candidates += _moved(nest, known)
    return next((c for c in candidates if c is not None and not (alone and c.replication > 1)), None)


def _moved(nest: Nest, known: Mapping[Buffer, Any]) -> Iterator[Distribution]:
    """Layouts of fragments that are accessed at constant distances from the loop's own place, where every thread finds
    what it needs in its registers that way."""
    for use in nest.uses:
        layout, plain = known.get(use.buffer), _unmoved(use, nest)
        dims = _identity(plain, nest) if layout is not None else None
        unmoved = all(a is b for a, b in zip(plain.indices, use.indices, strict=True))
        if dims is None or unmoved or len([d for d in dims if d >= 0]) != len(nest.vars):
            continue
        loop = _as_loop(layout, dims, nest)
        if loop is not None and fit(nest, loop, use, layout) is not None:
            yield loop


def choose(nest: Nest, known: Mapping[Buffer, Any], threads: int, *, vector: int | None = None,
           hint: Distribution | None = None) -> Distribution:  # fmt: skip
    """The loop's layout given the known fragments; one of `vector` elements a thread when nothing fixes it."""
    found = settled(nest, known, hint)
    if found is not None:
        return found
    alone = nest.updates_memory()
    width = vector or _vector(nest, threads)
    made = loop_layout(nest.extents, threads, width)
    if alone:
        return made
    # A fragment that takes this layout may be reduced or read by rows later: that needs the mode form.
    return padded_loop(nest.extents, threads, width) if nest.uses and not isinstance(made, Fragment) else made


def _as_loop(layout: Distribution, dims: tuple[int, ...], nest: Nest) -> Any:
    """A fragment's layout read as a layout of the loop over it."""
    if isinstance(layout, LinearLoop):
        return replace(layout, shape=nest.extents) if _in_order(dims, nest) else None
    if not isinstance(layout, Fragment):
        return layout if dims == tuple(range(len(nest.vars))) else None
    for at in reversed([i for i, d in enumerate(dims) if d < 0]):
        layout = reduce_dim(layout, at)
    order = [d for d in dims if d >= 0]
    inverse = tuple(order.index(d) for d in range(len(order)))
    return layout if inverse == tuple(range(len(order))) else permute_dims(layout, inverse)


def _in_order(dims: tuple[int, ...], nest: Nest) -> bool:
    """All loop dimensions in order, apart from those of extent 1: the row-major number of an element is the same."""
    return [d for d in dims if d >= 0] == list(range(len(nest.vars)))


def _vector(nest: Nest, threads: int) -> int:
    """Elements a thread handles in one access: 16 bytes of the widest element type, fewer when threads would idle."""
    walked = [u for u in (*nest.memory, *nest.uses) if any(mentions(i, nest.vars) for i in u.indices)]
    item = max((u.buffer.dtype.bytes for u in walked), default=4)
    widest = max(1, VECTOR_BYTES // item)
    size = math.prod(nest.extents)
    while widest > 1 and (nest.extents[-1] % widest or size < threads * widest):
        widest //= 2
    return widest


def derive(nest: Nest, loop: Distribution, use: Use, threads: int) -> Any:
    """The layout that a fragment gets from the loop that walks it; None when this access does not determine it."""
    dims = _identity(use, nest)
    if dims is not None and isinstance(loop, LinearLoop):
        return replace(loop, shape=tuple(use.buffer.shape)) if _in_order(dims, nest) else None
    if dims is None or not isinstance(loop, Fragment):
        return loop if dims == tuple(range(len(nest.vars))) else None
    layout: Fragment = loop
    kept = [d for d in dims if d >= 0]
    for dim in reversed(range(len(nest.vars))):
        if dim not in kept:
            layout = reduce_dim(layout, dim)
    if not kept:  # one element: reducing the last dimension has kept it, with extent 1
        dims = dims[1:]
    rank_order = sorted(kept)
    order = tuple(rank_order.index(d) for d in kept)
    if order != tuple(range(len(order))):
        layout = permute_dims(layout, order)
    for at, d in enumerate(dims):
        if d < 0:
            layout = _insert_unit(layout, at)
    return layout


def _insert_unit(layout: Fragment, at: int) -> Fragment:
    modes = tuple(
        type(m)(m.extent, m.axis, m.stride, m.dim + (m.dim >= at) if m.dim is not None else None, m.step)
        for m in layout.modes
    )
    return Fragment((*layout.shape[:at], 1, *layout.shape[at:]), modes, layout.base)


def infer(nest: Nest, known: Mapping[Buffer, Any], threads: int, *, free: bool, vector: int | None = None,
          hint: Any = None) -> dict[Buffer, Any]:  # fmt: skip
    """New fragment layouts that this loop determines."""
    unknown = [u for u in nest.uses if u.buffer not in known]
    if not unknown:
        return {}
    loop = choose(nest, known, threads, vector=vector, hint=hint) if free else settled(nest, known, hint)
    if loop is None:
        return {}
    out: dict[Buffer, Any] = {}
    for use in unknown:
        layout = derive(nest, loop, use, threads)
        if layout is not None:
            out.setdefault(use.buffer, layout)
    for use in unknown if free else ():
        if use.buffer not in out:
            out[use.buffer] = _undetermined(nest, loop, use, threads)
    return out


def _undetermined(nest: Nest, loop: Distribution, use: Use, threads: int) -> Distribution:
    """A layout for a fragment that no loop walks: small ones in every thread, where that serves this access."""
    shape = tuple(use.buffer.shape)
    if math.prod(shape) <= REPLICATED_ELEMENTS:
        everywhere = replicated(shape, threads)
        if fit(nest, loop, use, everywhere) is not None:
            return everywhere
    return padded_loop(shape, threads, 1)


@dataclass(frozen=True)
class Fit:
    """Where a loop finds a fragment element: register = base + Σ digit · weight over the loop's register digits and the
    serial loops around the access."""

    base: int
    weights: tuple[int, ...]
    inner: tuple[tuple[Var, int], ...] = ()


def fit(nest: Nest, loop: Distribution, use: Use, layout: Distribution) -> Fit | None:
    """The register of each access as a linear form of the loop's digits, proven over the whole loop by table; None when
    some thread does not hold the element it needs, or the register depends on the thread."""
    if not all(is_index_arithmetic(i) for i in use.indices):
        return None
    dims, loops = _identity(use, nest), use.inner
    if dims == tuple(range(len(nest.vars))) and (layout is loop or same(layout, loop)):
        strides = _reg_strides(loop)
        if strides is not None:
            return Fit(0, strides)
    inner = [(f.var, *limits) for f in loops if (limits := _constant_range(f)) is not None]
    free = {v for v, _, _ in inner}
    points = []
    for values in product(*[range(a, b) for _, a, b in inner]) if inner else [()]:
        env = {v: value for (v, _, _), value in zip(inner, values, strict=True)}
        points.append((values, _registers(nest, loop, use, layout, env, free)))
        if points[-1][1] is None:
            return None
    return _linear(loop, inner, points)


def _constant_range(f: For) -> tuple[int, int] | None:
    """Start and stop of a loop that counts by one between constants and is not empty."""
    if not (isinstance(f.start, Const) and isinstance(f.stop, Const) and isinstance(f.step, Const)):
        return None
    start, stop = int(f.start.value), int(f.stop.value)
    return (start, stop) if f.step.value == 1 and stop > start else None


def _reg_strides(loop: Distribution) -> tuple[int, ...] | None:
    extents = loop.reg_extents
    weights = []
    for i in range(len(extents)):
        unit = [0] * len(extents)
        unit[i] = 1
        weights.append(int(loop.register(unit)))
    return tuple(weights)


def _registers(nest: Nest, loop: Distribution, use: Use, layout: Distribution, env: dict[Var, int],
               free: set[Var]) -> np.ndarray | None:  # fmt: skip
    """Register number per loop register index (1-D), or None."""
    table, valid = loop.table(), loop.valid()
    scope: dict[Any, Any] = dict(env)
    for d, var in enumerate(nest.vars):
        scope[var] = table[..., d].astype(np.int64)
    for guard in use.guards:
        if is_index_arithmetic(guard) and all(v in scope for v in walk(guard) if isinstance(v, Var)):
            valid = valid & np.asarray(evaluate(guard, scope), dtype=bool)
    try:
        coords = [np.broadcast_to(np.asarray(evaluate(i, scope)), valid.shape) for i in use.indices]
    except KeyError:
        return None
    for coord, extent in zip(coords, use.buffer.shape, strict=True):
        if ((coord < 0) | (coord >= extent))[valid].any():
            return None
    coords = [np.where(valid, c, 0) for c in coords]
    threads = np.arange(table.shape[0])[:, None]
    register, held = layout.locate(threads, *coords)
    held = np.broadcast_to(np.asarray(held), valid.shape)
    if not held[valid].all():
        return None
    register = np.broadcast_to(np.asarray(register), valid.shape)
    first = np.where(valid.any(0), np.take_along_axis(register, valid.argmax(0)[None, :], 0)[0], -1)
    if (np.where(valid, register, first[None, :]) != first[None, :]).any():
        return None
    return first


def _linear(loop: Distribution, inner: Any, points: Any) -> Fit | None:
    """A linear form through the points, checked at every one of them (unused register slots, marked −1, are free)."""
    extents = loop.reg_extents
    count = max(1, math.prod(extents))
    digits = np.array([loop.register_digits(r) for r in range(count)], dtype=np.int64).reshape(count, len(extents))
    rows, values = [], []
    for at, registers in points:
        for r in range(count):
            if registers[r] >= 0:
                rows.append([1, *digits[r], *at])
                values.append(int(registers[r]))
    if not rows:
        return Fit(0, (0,) * len(extents), tuple((v, 0) for v, _, _ in inner))
    a, b = np.array(rows, dtype=np.float64), np.array(values, dtype=np.float64)
    solution = np.rint(np.linalg.lstsq(a, b, rcond=None)[0])
    if not np.array_equal(a @ solution, b):
        return None
    weights = [int(w) for w in solution]
    n = len(extents)
    return Fit(
        weights[0],
        tuple(weights[1 : 1 + n]),
        tuple((v, w) for (v, _, _), w in zip(inner, weights[1 + n :], strict=True)),
    )


def require_fit(nest: Nest, loop: Distribution, use: Use, layout: Distribution) -> Fit:
    """The access's registers; InternalError when a conversion is missing."""
    found = fit(nest, loop, use, layout)
    if found is None:
        raise InternalError(
            f"fragment {use.buffer.name} is not where this loop needs it",
            rule="layouts are converted before loops are emitted",
            loc=use.indices[0].loc if use.indices else None,
        )
    return found


def misfits_of(nest: Nest, known: Mapping[Buffer, Any], threads: int, *, vector: int | None = None,
               hint: Any = None) -> tuple[tuple[Buffer, Any], ...]:  # fmt: skip
    """Fragments that this loop does not find in its own registers, with a layout that it would; None when there is no
    such layout, because the elements that a thread needs follow from nothing but the index."""
    loop = choose(nest, known, threads, vector=vector, hint=hint)
    out: dict[Buffer, Any] = {}
    for use in nest.uses:
        if use.buffer in out or fit(nest, loop, use, known[use.buffer]) is not None:
            continue
        wanted = derive(nest, loop, use, threads)
        alike = (u for u in nest.uses if u.buffer is use.buffer)
        fits = wanted is not None and all(fit(nest, loop, u, wanted) is not None for u in alike)
        out[use.buffer] = wanted if fits else None
    return tuple(out.items())
