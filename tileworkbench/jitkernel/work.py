"""How much a kernel does: arithmetic by type, the least traffic to device memory, and the depth of its sums."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.dtype import DTYPES
from ..ir.expr import Binary, Call, Var
from ..ir.kernel import Kernel
from ..ir.node import Node, children, walk
from ..ir.stmt import For, Store
from ..ops.gemm import Gemm, GemmSparse
from ..ops.parallel import Parallel
from ..ops.reduce import Reduce
from .sizes import extent, shape


@dataclass(frozen=True)
class Work:
    """`flops` by dtype (a multiply-add counts 2); `nbytes` if every tensor is read or written once; `depth` the terms
    of the longest sum; `narrowest` the significand bits of the accumulators, None where nothing is summed."""

    flops: dict[str, float]
    nbytes: float
    depth: int
    accumulator: str | None
    elementwise: int  # roundings of element code

    @property
    def total(self) -> float:
        """Floating-point operations of all dtypes."""
        return sum(self.flops.values())


def work(kernel: Kernel, sizes: Mapping[Var, int]) -> Work:
    """Counted on the tile-level kernel for these sizes; extents that hang on the block have their first value."""
    blocks = math.prod(extent(g, sizes) for g in kernel.grid)
    flops: dict[str, float] = {}
    depth, accumulators, roundings = 0, [], 0
    for node, trips in with_trips(kernel.body, 1, sizes, kernel):
        if isinstance(node, Gemm | GemmSparse):
            m, n, k = (value(x, sizes) for x in node.mnk)
            k = k // 2 if isinstance(node, GemmSparse) else k  # what is not held is not multiplied
            name = node.a.buffer.dtype.name
            flops[name] = flops.get(name, 0.0) + 2.0 * m * n * k * trips * blocks
            depth = max(depth, k * sequential(trips))
            accumulators.append(node.c.buffer.dtype)
        elif isinstance(node, Reduce):
            extents = [value(x, sizes) for x in node.src.extents]
            depth = max(depth, extents[node.dim] * sequential(trips))
            name = "fp32_simt"
            flops[name] = flops.get(name, 0.0) + float(math.prod(extents)) * trips * blocks
            accumulators.append(node.dst.buffer.dtype)
        elif isinstance(node, Store) and node.value.dtype.is_float:
            count = sum(isinstance(n, Binary | Call) and n.dtype.is_float for n in walk(node.value))
            roundings += count + 1
            flops["fp32_simt"] = flops.get("fp32_simt", 0.0) + float(count) * trips * blocks
    floats = [a for a in accumulators if a.is_float]
    worst = min(floats, key=lambda d: d.bits).name if floats else None
    nbytes = sum(math.prod(shape(t, sizes)) * t.dtype.bytes for t in kernel.tensors)
    return Work({k: v for k, v in flops.items() if v}, float(nbytes), depth, worst, roundings)


def together(parts: Sequence[Work]) -> Work:
    """Several launches as one: their sums may run on from one into the next."""
    flops: dict[str, float] = {}
    for part in parts:
        for name, count in part.flops.items():
            flops[name] = flops.get(name, 0.0) + count
    accumulators = [p.accumulator for p in parts if p.accumulator is not None]
    worst = min(accumulators, key=lambda name: DTYPES[name].bits) if accumulators else None
    total = sum(p.nbytes for p in parts)
    return Work(flops, total, sum(p.depth for p in parts), worst, sum(p.elementwise for p in parts))


def with_trips(body: Any, trips: int, sizes: Mapping[Var, int], kernel: Kernel) -> Iterator[tuple[Node, int]]:
    """Every node with how often a block runs it; branches count as taken."""
    for node in body if isinstance(body, tuple) else (body,):
        yield node, trips
        if isinstance(node, For):
            start, stop, step = (value(x, sizes) for x in (node.start, node.stop, node.step))
            count = max(0, -(-(stop - start) // step)) if step else 1
            yield from with_trips(node.body, trips * count, sizes, kernel)
        elif isinstance(node, Parallel):
            elements = math.prod(value(x, sizes) for x in node.extents)
            yield from with_trips(node.body, trips * elements, sizes, kernel)
        else:
            yield from with_trips(tuple(children(node)), trips, sizes, kernel)


def value(x: Any, sizes: Mapping[Var, int]) -> int:
    """An extent as a number; what only a block or a loop knows counts as 0."""
    if isinstance(x, int):
        return x
    known = dict(sizes)
    for n in walk(x):
        if isinstance(n, Var):
            known.setdefault(n, 0)
    return extent(x, known)


def sequential(trips: int) -> int:
    """Sums run on over the loops around them, so every trip adds terms."""
    return max(1, trips)
