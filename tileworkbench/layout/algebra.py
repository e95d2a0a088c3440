"""Composition, complement, inverses, divide and product of layouts. LayoutError where a result is no layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from tileworkbench.errors import LayoutError
from tileworkbench.layout.layout import Layout, coalesce, concat, from_leaves

Tiler: TypeAlias = "int | Layout | Sequence[Tiler]"


def composition(outer: Layout, inner: Tiler) -> Layout:
    """index -> outer(inner(index)), nested as `inner`. A sequence composes mode by mode, leaving later modes alone."""
    if isinstance(inner, int):
        return composition(outer, Layout(inner))
    if not isinstance(inner, Layout):
        return _by_mode(composition, outer, inner)
    flat = coalesce(outer)
    result = _compose_nested(flat, inner)
    if len(flat.leaves()) > 1 and len(inner.leaves()) > 1:
        # Modes of `inner` that carry into each other inside `outer` cannot be composed one by one.
        index = np.arange(inner.size)
        if not np.array_equal(result(index), flat(inner(index))):
            raise LayoutError(f"{outer} composed with {inner}", rule="the result is not a shape:stride layout")
    return result


def _compose_nested(outer: Layout, inner: Layout) -> Layout:
    if isinstance(inner.shape, tuple):
        return concat(*(_compose_nested(outer, mode) for mode in inner))
    (leaf,) = inner.leaves()
    return from_leaves(_compose_leaf(outer, *leaf))


def _by_mode(operation: object, layout: Layout, tilers: Sequence[Tiler]) -> Layout:
    modes = list(layout)
    if len(tilers) > len(modes) or not callable(operation):
        raise LayoutError(f"{len(tilers)} tilers for the {len(modes)} modes of {layout}")
    done = [operation(mode, tiler) for mode, tiler in zip(modes, tilers, strict=False)]
    return concat(*done, *modes[len(tilers) :])


def _compose_leaf(outer: Layout, count: int, skip: int) -> list[tuple[int, int]]:
    """Modes of outer(i * skip) for i < count."""
    if skip == 0 or count == 1:
        return [(count, 0)] if count > 1 else []
    direct = _divide_leaves(outer.leaves(), count, skip)
    if direct is not None:
        return direct
    # Extents that do not divide each other can still give a layout; only the offsets themselves tell.
    fitted = _fit_leaves([outer(i * skip) for i in range(count)])
    if fitted is None:
        raise LayoutError(f"{outer} composed with {count}:{skip}", rule="the result is not a shape:stride layout")
    return fitted


def _divide_leaves(outer: list[tuple[int, int]], count: int, skip: int) -> list[tuple[int, int]] | None:
    """skip eats the first modes of `outer`, count takes from what is left; None where extents do not divide."""
    taken: list[tuple[int, int]] = []
    for extent, step in outer[:-1]:
        if skip >= extent:
            if skip % extent:
                return None
            skip //= extent
            continue
        if (count - 1) * skip < extent:
            break
        here = extent // skip
        if extent % skip or count % here:
            return None
        taken.append((here, skip * step))
        count, skip = count // here, 1
    else:
        step = outer[-1][1]
    return coalesce(from_leaves([*taken, (count, skip * step)])).leaves()


def _fit_leaves(line: list[int]) -> list[tuple[int, int]] | None:
    """A flat layout with exactly these offsets, found by trying the longest arithmetic run first; None if none is."""
    if len(line) == 1:
        return []
    step = line[1] - line[0]
    run = next((i for i, offset in enumerate(line) if offset != line[0] + i * step), len(line))
    for extent in range(run, 1, -1):
        if step < 0 or len(line) % extent:
            continue
        if all(offset == line[i - i % extent] + i % extent * step for i, offset in enumerate(line)):
            rest = _fit_leaves(line[::extent])
            if rest is not None:
                return [(extent, step), *rest]
    return None


def complement(layout: Layout, target: int | None = None) -> Layout:
    """The offsets below `target` (default: the cosize) that `layout` skips: (layout, complement) covers them all."""
    goal = layout.cosize if target is None else target
    modes: list[tuple[int, int]] = []
    reached = 1
    for extent, step in sorted(coalesce(layout).leaves(), key=lambda leaf: leaf[1]):
        if extent == 1 or step == 0:
            continue
        if step % reached:
            raise LayoutError(f"complement of {layout}", rule="modes neither overlap nor interleave")
        modes.append((step // reached, reached))
        reached = step * extent
    modes.append((-(-goal // reached), reached))
    return coalesce(from_leaves(modes))


def right_inverse(layout: Layout) -> Layout:
    """R with layout(R(i)) = i, over the longest run of offsets from 0 that modes of the layout reach."""
    modes: list[tuple[int, int]] = []
    reached, weighted, weight = 1, [], 1
    for extent, step in layout.leaves():
        weighted.append((step, extent, weight))
        weight *= extent
    for step, extent, domain_step in sorted(weighted):
        if extent == 1 or step == 0:
            continue
        if step != reached:
            break
        modes.append((extent, domain_step))
        reached *= extent
    return coalesce(from_leaves(modes))


def left_inverse(layout: Layout) -> Layout:
    """L with L(layout(i)) = i, for an injective layout."""
    if any(step == 0 and extent > 1 for extent, step in layout.leaves()):
        raise LayoutError(f"left inverse of {layout}", rule="the layout must be injective")
    return right_inverse(concat(layout, complement(layout)))


def logical_divide(layout: Layout, tiler: Tiler) -> Layout:
    """Two modes: inside a tile, and over the tiles. A sequence of tilers divides mode by mode."""
    if isinstance(tiler, int):
        return logical_divide(layout, Layout(tiler))
    if not isinstance(tiler, Layout):
        return _by_mode(logical_divide, layout, tiler)
    return composition(layout, concat(tiler, complement(tiler, layout.size)))


def logical_product(layout: Layout, tiler: Tiler) -> Layout:
    """Two modes: `layout` itself, and its copies arranged as `tiler`. A sequence multiplies mode by mode."""
    if isinstance(tiler, int):
        return logical_product(layout, Layout(tiler))
    if not isinstance(tiler, Layout):
        return _by_mode(logical_product, layout, tiler)
    copies = complement(layout, layout.size * tiler.cosize)
    return concat(layout, composition(copies, tiler))
