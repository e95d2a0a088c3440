"""Sizes for a kernel's run-time extents: multiples of its tiles, and sizes with a tail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import OptionError
from ..ir.evaluate import evaluate
from ..ir.expr import Binary, Const, Expr, Var
from ..ir.kernel import Kernel
from ..ir.node import Node, walk

NO_TILE = 64  # for an extent that no tile divides


def tile_of(kernel: Kernel, symbol: Var) -> int:
    """The largest tile that an extent is cut into: by the grid or by a loop, `ceildiv(M, 128)`."""
    found = [NO_TILE // 4]
    roots = (*[g for g in kernel.grid if isinstance(g, Expr)], *kernel.body)
    nodes = [n for n in walk(roots) if isinstance(n, Binary)]
    divisions = [(n.a, n.b.value) for n in nodes if n.op in ("floordiv", "ceildiv") and isinstance(n.b, Const)]
    found += [int(by) for value, by in divisions if mentions(value, symbol)]
    return max(found)


def mentions(value: Node, symbol: Var) -> bool:
    return any(n is symbol for n in walk(value))


def cases(kernel: Kernel, given: Mapping[str, Any]) -> list[dict[Var, int]]:
    """The sizes to check: those given by name; every other extent once as two tiles and once as a tile and a tail. The
    tail is odd, so that rows also start at addresses that no wide access may be used for."""
    symbols = kernel.symbols()
    known = {s.name for s in symbols} | {v.name for v in kernel.scalars}
    for name in given:
        if name not in known:
            raise OptionError(
                f"`{kernel.name}` has no run-time extent or scalar `{name}`",
                rule=f"it has {', '.join(sorted(known)) or 'none: all of its sizes are fixed'}",
                fix="set one of these",
                loc=kernel.loc,
            )
    fixed = {s: int(given[s.name]) for s in symbols if s.name in given}
    free = [s for s in symbols if s not in fixed]
    if not free:
        return [fixed]
    tiles = {s: tile_of(kernel, s) for s in free}
    even = fixed | {s: 2 * t for s, t in tiles.items()}
    tail = fixed | {s: t + t // 2 + 1 - (t // 2) % 2 for s, t in tiles.items()}
    return [even, tail]


def extent(value: Any, sizes: Mapping[Var, int]) -> int:
    return value if isinstance(value, int) else int(evaluate(value, sizes))


def shape(tensor: Any, sizes: Mapping[Var, int]) -> tuple[int, ...]:
    return tuple(extent(s, sizes) for s in tensor.shape)
