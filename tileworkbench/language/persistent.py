"""T.Persistent: the tiles that one of a few resident blocks works through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import Loc
from ..ir.expr import Expr, Var, as_expr, binary, ceildiv, compare
from ..ir.stmt import ZERO, For, If, Let
from .builder import Builder
from .faults import fault, shown
from .loopbodies import Keep, Loop, as_index


@dataclass(eq=False)
class Tiles(Loop):
    """T.Persistent: the tiles of a domain that one persistent block works through, grouped on the last dimension."""

    domain: tuple[Any, ...] = ()
    wave_size: Any = 1
    index: Any = 0
    group_size: int = 8

    @property
    def count(self) -> int:
        return len(self.domain)

    def run(self, builder: Builder, names: tuple[str, ...], loc: Loc, keep: Keep) -> Iterator[tuple[Var, ...]]:
        total = self.domain[0]
        for extent in self.domain[1:]:
            total = total * extent
        group = min(self.group_size, self.domain[-1]) if isinstance(self.domain[-1], int) else self.group_size
        waves = ceildiv(total, self.wave_size)
        with builder.inside("for", "Persistent") as frame:
            wave = Var(builder.unique("wave"), loc=loc)
            builder.define(wave)
            tile = Var(builder.unique("tile"), loc=loc)
            number = binary("add", binary("mul", wave, self.wave_size), self.index)
            builder.emit(Let(tile, number, loc=loc))
            builder.define(tile)
            with builder.inside("then") as guarded:
                vars = tuple(
                    self._bound(builder, name, value, loc, keep)
                    for name, value in zip(names, self._coordinates(tile, group), strict=True)
                )
                yield vars
            builder.emit(If(compare("lt", tile, total), tuple(guarded.body), loc=loc))
        made = For(wave, ZERO, as_index(waves), as_index(1), tuple(frame.body), "persistent", self.hints, loc=loc)
        builder.emit(made)

    def _coordinates(self, tile: Var, group: Any) -> list[Any]:
        """Row-major over the domain with the last dimension cut into groups: all rows of a group come first."""
        *front, last = self.domain
        rows: Any = 1
        for extent in front:
            rows = rows * extent
        per_group = rows * group
        first = binary("mul", binary("floordiv", tile, per_group), group)
        inside = binary("floormod", tile, per_group)
        width: Any = group
        if not (isinstance(last, int) and isinstance(group, int) and last % group == 0):
            width = binary("min", group, binary("sub", last, first))  # the last group may be narrower
        row, column = binary("floordiv", inside, width), binary("add", first, binary("floormod", inside, width))
        coordinates: list[Any] = [column]
        for extent in reversed(front[1:]):
            coordinates.append(binary("floormod", row, extent))
            row = binary("floordiv", row, extent)
        return list(reversed([*coordinates, row])) if front else [column]

    def _bound(self, builder: Builder, name: str, value: Any, loc: Loc, keep: Keep) -> Var:
        var = Var(builder.unique(name), loc=loc)
        builder.emit(Let(var, as_expr(value), loc=loc))
        builder.define(var)
        keep(builder, name, var)
        return var


def Persistent(domain: Any, wave_size: Any, index: Any, group_size: int = 8) -> Loop:
    """The tiles of `domain` that block `index` of `wave_size` works through, grouped on the last dimension."""
    whole = isinstance(domain, list | tuple) and len(domain) > 0
    for value in (*(domain if whole else ()), wave_size, index, group_size):
        whole = whole and (value.dtype.is_int if isinstance(value, Expr) else hasattr(value, "__index__"))
    if not whole or not (hasattr(group_size, "__index__") and int(group_size) > 0):
        raise fault(
            f"T.Persistent({shown(domain)}, {shown(wave_size)}, {shown(index)}, group_size={shown(group_size)})",
            "it takes a list of extents, the number of blocks and the block's number; groups hold 1 or more columns",
            "T.Persistent([T.ceildiv(M, BM), T.ceildiv(N, BN)], blocks, bx)",
        )
    return Tiles(
        "Persistent",
        tuple((0, d, 1) for d in domain),
        domain=tuple(domain),
        wave_size=wave_size,
        index=index,
        group_size=group_size,
    )
