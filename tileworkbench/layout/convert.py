"""What moving a tile from one register layout to another takes: nothing, registers, shuffles, or shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tileworkbench.errors import LayoutError
from tileworkbench.layout.distribution import Distribution, IntArray

Kind = Literal["same", "registers", "shuffle", "shared"]

# Issue slots per element and thread: a move; a shuffle with its selects; a store and a load with a barrier between.
MOVE_COST, SHUFFLE_COST, SHARED_COST, BARRIER_COST = 1, 4, 8, 40


@dataclass(frozen=True, eq=False)
class Conversion:
    """`source_register[t, r]` and `source_thread[t, r]` (thread numbers) are where destination (t, r) comes from.

    "same": the target's registers are the source's. "registers": one register map serves all threads (`registers`).
    "shuffle": within a warp, or a register choice that differs between threads. "shared": across warps; the source
    arrays name replica 0.
    """

    kind: Kind
    cost: int
    source_thread: IntArray
    source_register: IntArray
    registers: tuple[int, ...] = ()


def local_registers(source: Distribution, table: IntArray, valid: NDArray[np.bool_], base: int = 0) -> IntArray | None:
    """Register of `source` that holds, in the same thread, each element of `table` (threads, registers, rank).

    Row t belongs to thread base + t. -1 where not `valid`; None when some thread lacks an element it needs. This tells
    whether a loop's accesses, mapped through their index expressions, stay in its own threads' registers.
    """
    thread = np.arange(base, base + table.shape[0])[:, None]
    if base < source.base or base + table.shape[0] > source.base + source.threads:
        return None
    coords = np.moveaxis(np.where(valid[..., None], table, 0), -1, 0)
    if any((c < 0).any() or (c >= extent).any() for c, extent in zip(coords, source.shape, strict=True)):
        return None
    register, held = source.locate(thread, *coords)
    if not (held | ~valid).all():
        return None
    return np.where(valid, register, -1).astype(np.int32)


@cache
def conversion(source: Distribution, target: Distribution, warp: int = 32) -> Conversion:
    """Classify source -> target, tiles of one shape. Cost: issue slots per thread, comparable between kinds."""
    if source.shape != target.shape:
        raise LayoutError(f"a conversion between tiles of {source.shape} and {target.shape}")
    valid, table = target.valid(), target.table()
    registers = target.registers
    own = np.broadcast_to(np.arange(target.base, target.base + target.threads, dtype=np.int32)[:, None], valid.shape)
    local = local_registers(source, table, valid, target.base)
    if local is not None:
        uniform = np.where(valid.any(axis=0), local.max(axis=0), np.arange(registers))
        if ((local == uniform) | ~valid).all():
            mapping = tuple(int(r) for r in uniform)
            moves = sum(r != i for i, r in enumerate(mapping))
            return Conversion("registers" if moves else "same", MOVE_COST * moves, own, local, mapping)
        return Conversion("shuffle", SHUFFLE_COST * _choices(local), own, local)
    coords = tuple(np.moveaxis(np.where(valid[..., None], table, 0), -1, 0))
    thread, register = (np.broadcast_to(part, valid.shape) for part in source.owner(*coords))
    near = _same_warp_holder(source, coords, own, warp)
    if near is not None and ((near >= 0) | ~valid).all():
        chosen = np.where(valid, register, -1).astype(np.int32)
        return Conversion("shuffle", SHUFFLE_COST * _choices(chosen), near, chosen)
    cost = BARRIER_COST + SHARED_COST * registers
    return Conversion("shared", cost, thread.astype(np.int32), np.where(valid, register, -1).astype(np.int32))


def _choices(local: IntArray) -> int:
    """Distinct source registers per destination register, summed: each takes one shuffle or select."""
    return sum(len(np.unique(column[column >= 0])) for column in local.T)


def _same_warp_holder(source: Distribution, coords: tuple[IntArray, ...], own: IntArray, warp: int) -> IntArray | None:
    """A thread of the reader's own warp that holds each element, -1 where there is none."""
    found = np.full(own.shape, -1, dtype=np.int32)
    for holder in source.replica_threads(*coords):
        near = (found < 0) & (np.asarray(holder) // warp == own // warp)
        found = np.where(near, holder, found).astype(np.int32)
        if (found >= 0).all():
            break
    return found
