"""T.BaseTileScheduler and T.PersistentTileScheduler: objects that say which tile a resident block works on next.

Their state is variables of each thread, so that every role of a kernel runs its own `while sched.valid()` loop.
"""

from __future__ import annotations

from typing import Any

from ..ir.dtype import INT32
from ..ir.expr import Buffer, Expr, Load, as_expr, binary, cast, ceildiv, compare, maximum, minimum
from ..ir.stmt import ZERO, Store
from ..target import Target
from .alloc import alloc_var
from .builder import require
from .faults import fault, shown


class Cell:
    """A variable of the scheduler: `cell[0]` reads it, `cell[0] = value` sets it."""

    def __init__(self, name: str) -> None:
        builder = require("a tile scheduler")
        builder.hint = name
        self._place: Buffer = alloc_var(INT32)

    def __getitem__(self, at: Any) -> Expr:
        return Load(self._place, (ZERO,))

    def __setitem__(self, at: Any, value: Any) -> None:
        builder = require("a tile scheduler")
        builder.emit(Store(self._place, (ZERO,), cast(as_expr(value), INT32), loc=builder.here))


class BaseTileScheduler:
    """The state of a walk over tiles: `m_idx` and `n_idx` of the current one, `linear_idx`, and `current_iter`, how
    many this worker has gone past. A subclass sets `_total_tiles` and says in `update_current_idx(linear_idx)` which
    tile a number means, by `self._m_idx[0] = …` and `self._n_idx[0] = …`."""

    def __init__(self, stateful: bool = True, name: str | None = None) -> None:
        self._stateful = stateful
        self._total_tiles: Any = 0
        if stateful:
            prefix = f"{name}_" if name else ""
            for part in ("m_idx", "n_idx", "linear_idx", "current_iter"):
                setattr(self, f"_{part}", Cell(prefix + part))

    def _read(self, part: str) -> Expr:
        if not self._stateful:
            raise fault(
                f"the {part} of a tile scheduler without state",
                "stateful=False leaves coord(tile_id) alone",
                "leave stateful out",
            )
        found: Expr = getattr(self, f"_{part}")[0]
        return found

    @property
    def m_idx(self) -> Expr:
        """The current tile's row."""
        return self._read("m_idx")

    @property
    def n_idx(self) -> Expr:
        """The current tile's column."""
        return self._read("n_idx")

    @property
    def linear_idx(self) -> Expr:
        """The current tile's number."""
        return self._read("linear_idx")

    @property
    def current_iter(self) -> Expr:
        """How many tiles this worker has gone past."""
        return self._read("current_iter")

    def update_current_idx(self, linear_idx: Any) -> None:
        """Sets the current tile from its number; a subclass says how."""
        raise fault(
            f"{type(self).__name__} does not say which tile a number means",
            "a tile scheduler has update_current_idx(linear_idx)",
            "T.PersistentTileScheduler, or write the method",
        )

    def init(self, linear_init: Any) -> None:
        """Begins at the tile of this number."""
        self._go(0, linear_init)

    def next_tile(self, step: Any) -> None:
        """Goes to the tile `step` numbers on."""
        self._go(self.current_iter + 1, self.linear_idx + step)

    def valid(self) -> Expr:
        """Whether there is a current tile."""
        return compare("lt", self.linear_idx, self._total_tiles)

    def _go(self, turn: Any, number: Any) -> None:
        self._read("linear_idx")
        self._current_iter[0] = turn  # type: ignore[attr-defined]
        self._linear_idx[0] = number  # type: ignore[attr-defined]
        self.update_current_idx(self.linear_idx)


class PersistentTileScheduler(BaseTileScheduler):
    """Tiles of a grid of `num_m_tiles` × `num_n_tiles`, dealt out to `num_workers` resident workers one after another.

    With `column_major` rows vary fastest, else columns; `swizzle_size` > 1 walks in panels of so many tiles along the
    other axis, the last as narrow as it must be. With `cluster_size` > 1 the workers are clusters and `m_idx` counts
    rows of them: the block's row is `m_idx * cluster_size + T.block_rank_in_cluster()`. `num_workers`: by default one
    block a processor of the card that is there."""

    def __init__(
        self,
        num_m_tiles: Any,
        num_n_tiles: Any,
        num_workers: Any = None,
        swizzle_size: int = 1,
        column_major: bool = True,
        cluster_size: int = 1,
        stateful: bool = True,
        name: str | None = None,
    ) -> None:
        for what, value in (("swizzle_size", swizzle_size), ("cluster_size", cluster_size)):
            if isinstance(value, Expr) or not hasattr(value, "__index__") or value < 1:
                raise fault(
                    f"T.PersistentTileScheduler: {what}={shown(value)}", "it is an int of 1 or more", f"{what}=1"
                )
        super().__init__(stateful=stateful, name=name)
        if num_workers is None:
            num_workers = max(1, _processors() // cluster_size)
        self.num_workers, self.swizzle_size, self.cluster_size = num_workers, swizzle_size, cluster_size
        self._column_major = column_major
        rows, columns = as_expr(ceildiv(as_expr(num_m_tiles), cluster_size)), as_expr(num_n_tiles)
        self._total_tiles = binary("mul", rows, columns)
        self._primary, self._secondary = (rows, columns) if column_major else (columns, rows)

    def coord(self, tile_id: Any) -> tuple[Expr, Expr]:
        """(row, column) of the tile of this number."""
        panel = binary("mul", self._primary, self.swizzle_size)
        group = binary("floordiv", tile_id, panel)
        base = binary("mul", group, self.swizzle_size)
        width = maximum(1, minimum(self.swizzle_size, binary("sub", self._secondary, base)))
        inside = binary("sub", tile_id, binary("mul", group, panel))
        fast, slow = binary("floordiv", inside, width), binary("add", base, binary("floormod", inside, width))
        return (fast, slow) if self._column_major else (slow, fast)

    def update_current_idx(self, linear_idx: Any) -> None:
        """Sets the current tile from its number."""
        m, n = self.coord(linear_idx)
        self._m_idx[0], self._n_idx[0] = m, n  # type: ignore[attr-defined]

    def next_tile(self, step: Any = None) -> None:
        """Goes to this worker's next tile."""
        super().next_tile(self.num_workers if step is None else step)


def _processors() -> int:
    """Those of the first card; without one, those that the CPU target counts with."""
    return Target.of("auto").device.sm_count
