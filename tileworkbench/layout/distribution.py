"""What every map of a tile onto threads and registers answers, whatever its form (modes, linearised loop, function).

Threads count from `base`; row t of `table()` is thread base + t. Arithmetic is polymorphic: where a method says so, its
arguments may be Python ints, NumPy arrays or symbolic expressions that overload + - * // %.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


def split_index(index: Any, chain: Sequence[tuple[int, int]]) -> tuple[Any, ...]:
    """Digits of `index` for (stride, extent) pairs that form a mixed radix; polymorphic.

    The digit of greatest weight keeps no modulo: an index beyond the radix shows as a digit beyond its extent.
    """
    top = max((stride for stride, _ in chain), default=0)
    digits = []
    for stride, extent in chain:
        digit = index // stride if stride > 1 else index
        digits.append(digit if stride == top else digit % extent)
    return tuple(digits)


def weighted_sum(terms: Sequence[tuple[Any, int]]) -> Any:
    """Sum of index * weight without the multiplications by one and additions of zero; polymorphic."""
    total: Any = 0
    for index, weight in terms:
        if weight == 0 or (isinstance(index, int) and index == 0):
            continue
        term = index if weight == 1 else index * weight
        total = term if isinstance(total, int) and total == 0 else total + term
    return total


def row_major_index(coords: Sequence[Any], shape: Sequence[int]) -> Any:
    """Row-major linear index of `coords` in `shape`; polymorphic."""
    weights = [prod(shape[i + 1 :]) for i in range(len(shape))]
    return weighted_sum(list(zip(coords, weights, strict=True)))


def row_major_coords(index: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """Coordinates of a row-major linear index; the first one exceeds its extent when the index does; polymorphic."""
    if not shape:
        return ()
    coords: list[Any] = []
    rest = index
    for extent in reversed(shape[1:]):
        coords.append(rest % extent if extent > 1 else 0)
        rest = rest // extent if extent > 1 else rest
    return (rest, *reversed(coords))


def evaluate(function: Callable[..., Any], grids: Sequence[IntArray]) -> tuple[IntArray, ...]:
    """Values of `function` over index grids, one array per result. A function that cannot take arrays (it branches on
    its arguments, say) is called per element."""
    shape = grids[0].shape if grids else ()
    try:
        result = function(*grids)
    except (TypeError, ValueError):
        flat = [function(*point) for point in zip(*(grid.ravel().tolist() for grid in grids), strict=True)]
        columns = zip(
            *(value if isinstance(value, tuple | list) else (value,) for value in flat),
            strict=True,
        )
        return tuple(np.array(column, dtype=np.int32).reshape(shape) for column in columns)
    values = result if isinstance(result, tuple | list) else (result,)
    arrays = [np.asarray(value) for value in values]
    if any(a.dtype.kind not in "iub" for a in arrays):
        raise ValueError("it gives no integers")
    return tuple(np.broadcast_to(a, shape).astype(np.int32) for a in arrays)


class Distribution:
    """A tile of `shape` spread over `threads` threads with `registers` elements each; see the module's text."""

    shape: tuple[int, ...]
    base: int
    closed_form: bool = True

    @property
    def rank(self) -> int:
        """Dimensions of the tile."""
        return len(self.shape)

    @property
    def threads(self) -> int:
        """Threads that hold elements, replicas included."""
        raise NotImplementedError

    @property
    def replication(self) -> int:
        """How many threads hold each element."""
        raise NotImplementedError

    @property
    def reg_extents(self) -> tuple[int, ...]:
        """Extents of the register loops, outermost first; their product is `registers`."""
        raise NotImplementedError

    @property
    def registers(self) -> int:
        """Elements per thread."""
        return prod(self.reg_extents)

    def register(self, reg_indices: Sequence[Any]) -> Any:
        """Register number for one index per register loop; polymorphic."""
        raise NotImplementedError

    def register_digits(self, register: Any) -> tuple[Any, ...]:
        """Inverse of `register`; polymorphic."""
        raise NotImplementedError

    def coordinate(self, thread: Any, reg_indices: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Coordinates held by `thread` at one index per register loop; polymorphic."""
        raise NotImplementedError

    def owner(self, *coords: Any) -> tuple[Any, Any]:
        """(thread, register) of replica 0 that holds `coords`; polymorphic."""
        raise NotImplementedError

    def replica_threads(self, *coords: Any) -> list[Any]:
        """All threads that hold `coords`, replica 0 first."""
        raise NotImplementedError

    def replica(self, thread: Any) -> Any:
        """Which replica `thread` is, 0 … replication - 1; side effects belong to replica 0; polymorphic."""
        raise NotImplementedError

    def locate(self, thread: Any, *coords: Any) -> tuple[Any, Any]:
        """(register, held): the register that holds `coords` and whether `thread` is one of its holders."""
        _, register = self.owner(*coords)
        held: Any = False
        for holder in self.replica_threads(*coords):
            held = (holder == thread) | held
        return register, held

    def coords(self, thread: Any, register: Any) -> tuple[Any, ...]:
        """Coordinates at (thread, register); arrays broadcast; polymorphic."""
        return self.coordinate(thread, self.register_digits(register))

    @cached_property
    def _table(self) -> IntArray:
        thread = np.arange(self.base, self.base + self.threads, dtype=np.int32)[:, None]
        register = np.arange(self.registers, dtype=np.int32)[None, :]
        columns = np.broadcast_arrays(*self.coords(thread, register), np.zeros((self.threads, self.registers)))[:-1]
        return read_only(np.stack(columns, axis=-1).astype(np.int32))

    def table(self) -> IntArray:
        """Coordinates as int32 (threads, registers, rank), read-only; where `valid()` is false there is no element."""
        return self._table

    @cached_property
    def _valid(self) -> BoolArray:
        table = self.table()
        inside = (table >= 0) & (table < np.array(self.shape, dtype=np.int32))
        return read_only(np.asarray(inside.all(axis=-1)))

    def valid(self) -> BoolArray:
        """Bool (threads, registers): the coordinates lie inside the shape."""
        return self._valid

    @property
    def guard_dims(self) -> tuple[int, ...]:
        """Dimensions whose coordinates can leave the shape."""
        raise NotImplementedError

    @property
    def guarded(self) -> bool:
        """Whether some places hold no element."""
        return bool(self.guard_dims)

    def guards(self, thread: Any, reg_indices: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Conditions that must all hold for the element to exist; empty when it always does; polymorphic (<)."""
        if not self.guard_dims:
            return ()
        coords = self.coordinate(thread, reg_indices)
        return tuple(coords[dim] < self.shape[dim] for dim in self.guard_dims)

    def guard(self, thread: Any, reg_indices: Sequence[Any] = ()) -> Any:
        """The conditions of `guards` joined with &, or None."""
        joined: Any = None
        for condition in self.guards(thread, reg_indices):
            joined = condition if joined is None else joined & condition
        return joined

    def describe(self) -> str:
        """Shape, threads, registers and replicas in a few words."""
        shape = "×".join(map(str, self.shape)) or "scalar"
        copies = f", {self.replication} replicas" if self.replication > 1 else ""
        return f"{shape} over {self.threads} threads × {self.registers} registers{copies}"


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Tables are shared between callers, so nobody may write into them."""
    array.setflags(write=False)
    return array
