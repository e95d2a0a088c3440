"""The expression form of a fragment: two functions of the coordinates, answered through tables.

`fragment_from_function` returns the mode form where one exists, since only modes have a closed form for generated code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tileworkbench.errors import LayoutError
from tileworkbench.layout.distribution import (
    Distribution,
    IntArray,
    evaluate,
    read_only,
)
from tileworkbench.layout.fragment import Axis, Fragment, Mode


class FunctionFragment(Distribution):
    """thread_fn(*coords[, replica]) and index_fn(*coords) give the thread and the register of each element.

    The replica argument is passed when `replicate` > 1. LayoutError when two elements share a place.
    """

    closed_form = False
    base = 0

    def __init__(
        self,
        shape: Sequence[int],
        thread_fn: Callable[..., Any],
        index_fn: Callable[..., Any],
        replicate: int = 1,
    ) -> None:
        self.shape = tuple(int(extent) for extent in shape)
        self._replicate = replicate
        grids = list(np.indices(self.shape, dtype=np.int32))
        copies = [[*grids, np.full(self.shape, rep, np.int32)] if replicate > 1 else grids for rep in range(replicate)]
        self.owner_threads = read_only(np.stack([_single(thread_fn, grid, "thread") for grid in copies]))
        self.owner_registers = read_only(_single(index_fn, grids, "register"))
        self._check()

    def _check(self) -> None:
        places = self.owner_threads.astype(np.int64) * self.registers + self.owner_registers
        if np.unique(places).size != places.size:
            raise LayoutError(
                f"the fragment function puts two elements of {self.shape} into one register of one thread",
                rule="thread and index together must tell all elements apart",
                fix="use every index in one of the two functions",
            )

    @cached_property
    def threads(self) -> int:
        return int(self.owner_threads.max()) + 1

    @cached_property
    def registers(self) -> int:
        return int(self.owner_registers.max()) + 1

    @property
    def replication(self) -> int:
        return self._replicate

    @property
    def reg_extents(self) -> tuple[int, ...]:
        return (self.registers,) if self.registers > 1 else ()

    @property
    def guard_dims(self) -> tuple[int, ...]:
        return () if self.valid().all() else tuple(range(self.rank))

    @cached_property
    def _table(self) -> IntArray:
        table = np.full((self.threads, self.registers, self.rank), -1, dtype=np.int32)
        coords = np.moveaxis(np.indices(self.shape, dtype=np.int32), 0, -1)
        for threads in self.owner_threads:
            table[threads, self.owner_registers] = coords
        return read_only(table)

    def register(self, reg_indices: Sequence[Any]) -> Any:
        return reg_indices[0] if reg_indices else 0

    def register_digits(self, register: Any) -> tuple[Any, ...]:
        return (register,) if self.reg_extents else ()

    def coordinate(self, thread: Any, reg_indices: Sequence[Any] = ()) -> tuple[Any, ...]:
        """By table: ints and NumPy arrays only. Where there is no element the coordinates are -1."""
        register = self.register(reg_indices)
        if not all(isinstance(index, int | np.integer | np.ndarray) for index in (thread, register)):
            raise LayoutError(
                "a fragment given by functions has no closed form",
                rule="generated code computes thread and register from digits of the indices",
                fix="write the functions by `//`, `%` and sums of the indices",
            )
        found = self._table[thread, register]
        return tuple(found[..., dim] for dim in range(self.rank))

    def owner(self, *coords: Any) -> tuple[Any, Any]:
        return self.owner_threads[0][coords], self.owner_registers[coords]

    def replica_threads(self, *coords: Any) -> list[Any]:
        return [threads[coords] for threads in self.owner_threads]

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return (
            self.shape,
            self._replicate,
            self.owner_threads.tobytes(),
            self.owner_registers.tobytes(),
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, FunctionFragment) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)


def _single(function: Callable[..., Any], grids: Sequence[IntArray], what: str) -> IntArray:
    values = evaluate(function, grids)
    if len(values) != 1 or values[0].min() < 0:
        raise LayoutError(
            f"the {what} function must give one index of 0 or more",
            rule="threads and registers count from 0",
            fix="return one integer expression of the indices",
        )
    return values[0]


def fragment_from_function(
    shape: Sequence[int],
    thread_fn: Callable[..., Any],
    index_fn: Callable[..., Any],
    replicate: int = 1,
) -> Fragment | FunctionFragment:
    """The fragment of two functions, in mode form where one exists."""
    by_table = FunctionFragment(shape, thread_fn, index_fn, replicate)
    first = int(by_table.owner_threads.min())
    if first:  # the threads before the first one hold nothing

        def counted(*args: Any) -> Any:
            return evaluate(thread_fn, [np.asarray(a) for a in args])[0] - first

        found = fit_modes(FunctionFragment(shape, counted, index_fn, replicate))
        return replace(found, base=first) if found is not None else by_table
    return fit_modes(by_table) or by_table


def fit_modes(source: Distribution) -> Fragment | None:
    """The mode form of any map, or None when it has none. Exact: the result's table is compared with the source's."""
    if not source.valid().all() or source.threads * source.registers != prod(source.shape) * source.replication:
        return None
    table = source.table()
    if table[0, 0].any():
        return None
    threads = _line_modes(table[:, 0], "thread")
    registers = _line_modes(table[0, :], "reg")
    if threads is None or registers is None:
        return None
    try:
        fitted = Fragment(source.shape, (*threads, *registers), source.base)
    except LayoutError:
        return None
    return fitted if np.array_equal(fitted.table(), table) else None


def _line_modes(line: IntArray, axis: Axis) -> list[Mode] | None:
    """Modes of one axis from the coordinates along it: the longest arithmetic run at each stride is one mode."""
    modes, stride, count = [], 1, line.shape[0]
    while stride < count:
        step = line[stride]
        moved = np.flatnonzero(step)
        if moved.size > 1:
            return None
        multiples = np.arange(-(-count // stride))[:, None] * step
        breaks = np.flatnonzero((line[::stride] != multiples).any(axis=1))
        extent = int(breaks[0]) if breaks.size else len(multiples)
        if count % (stride * extent):
            return None
        dim = int(moved[0]) if moved.size else None
        modes.append(Mode(extent, axis, stride, dim, int(step[moved[0]]) if moved.size else 0))
        stride *= extent
    return modes
