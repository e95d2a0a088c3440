"""Which memory a tile is in, asked of the tile itself, of a slice of it or of an element."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..ir.expr import Buffer


def space_of(tile: Any) -> str:
    """The memory; ArgumentError, which is a TypeError, for what is no tile."""
    found = tile if isinstance(tile, Buffer) else getattr(tile, "buffer", None)
    if not isinstance(found, Buffer):
        raise ArgumentError(
            f"the memory of {type(tile).__name__}", rule="tiles, slices and elements are in memory", fix="pass the tile"
        )
    return found.space


def is_global(tile: Any) -> bool:
    """Whether it lies in global memory."""
    return space_of(tile) == "global"


def is_shared(tile: Any, allow_dynamic: bool = True) -> bool:
    """All shared memory is asked for at the launch here."""
    return allow_dynamic and space_of(tile) == "shared"


def is_shared_dynamic(tile: Any) -> bool:
    """Whether it lies in dynamically sized shared memory."""
    return space_of(tile) == "shared"


def is_fragment(tile: Any) -> bool:
    """Whether it lies in the registers of a block's threads together."""
    return space_of(tile) == "fragment"


def is_local(tile: Any) -> bool:
    """Whether every thread has its own."""
    return space_of(tile) == "local"


def is_local_var(tile: Any) -> bool:
    """Whether it is a T.alloc_var."""
    return space_of(tile) == "var"
