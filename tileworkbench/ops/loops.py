"""How a parallel element loop is spread over threads, and where its fragment operands then are.

A loop takes the layout of a fragment that it walks element by element; without one it is spread for wide, coalesced
accesses. Everything is decided by tables over the whole loop, never by the form of an index.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..ir.arith import mentions
from ..ir.expr import Binary, Buffer, Expr
from ..layout import (
    Distribution,
    Fragment,
    LinearLoop,
    loop_layout,
    padded_loop,
    permute_dims,
    reduce_dim,
    replicated,
)
from .fit import fit
from .nest import Nest, Use, identity

VECTOR_BYTES = 16
REPLICATED_ELEMENTS = 64


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
        layout, dims = known.get(use.buffer), identity(use, nest)
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
        if layout is None:
            continue
        dims = identity(plain, nest)
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
    """Elements a thread handles in one access: 16 bytes of the widest element type that the last dimension walks, fewer
    when threads would idle."""
    uses = (*nest.memory, *nest.uses)
    walked = [u for u in uses if any(mentions(i, nest.vars[-1:]) for i in u.indices)]
    walked = walked or [u for u in uses if any(mentions(i, nest.vars) for i in u.indices)]
    item = max((u.buffer.dtype.bytes for u in walked), default=4)
    widest = max(1, VECTOR_BYTES // item)
    size = math.prod(nest.extents)
    while widest > 1 and (nest.extents[-1] % widest or size < threads * widest):
        widest //= 2
    return widest


def derive(nest: Nest, loop: Distribution, use: Use) -> Any:
    """The layout that a fragment gets from the loop that walks it; None when this access does not determine it."""
    dims = identity(use, nest)
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
        layout = derive(nest, loop, use)
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


def misfits_of(nest: Nest, known: Mapping[Buffer, Any], threads: int, *, vector: int | None = None,
               hint: Any = None) -> tuple[tuple[Buffer, Any], ...]:  # fmt: skip
    """Fragments that this loop does not find in its own registers, with a layout that it would; None when there is no
    such layout, because the elements that a thread needs follow from nothing but the index."""
    loop = choose(nest, known, threads, vector=vector, hint=hint)
    out: dict[Buffer, Any] = {}
    for use in nest.uses:
        if use.buffer in out or fit(nest, loop, use, known[use.buffer]) is not None:
            continue
        wanted = derive(nest, loop, use)
        alike = (u for u in nest.uses if u.buffer is use.buffer)
        fits = wanted is not None and all(fit(nest, loop, u, wanted) is not None for u in alike)
        out[use.buffer] = wanted if fits else None
    return tuple(out.items())
