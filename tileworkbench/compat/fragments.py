"""TileLang's Fragment on this package's fragments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import LayoutError
from ..ir.expr import Const, Var
from ..layout import Distribution, FunctionFragment, fragment_from_function, replicated
from ..layout import Fragment as ModeFragment
from ..layout import repeat as repeat_dim
from ..layout import replicate as replicate_threads
from ..layout.distribution import evaluate
from .layoutmethods import numbers_of


class FragmentMethods(Distribution):
    """TileLang's methods of a fragment. Two are equal when every thread holds the same elements in the same places."""

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Distribution):
            return self is other
        mine, theirs = ((f.shape, f.threads, f.registers, f.base) for f in (self, other))
        valid = self.valid()
        if mine != theirs or not np.array_equal(valid, other.valid()):
            return False
        return bool(np.array_equal(self.table()[valid], other.table()[valid]))

    @cached_property
    def _digest(self) -> int:
        return hash((*self.shape, self.threads, self.registers, self.table().tobytes()))

    def __hash__(self) -> int:
        return self._digest

    @property
    def thread(self) -> Any:
        """The expression of the thread over the variables i0, i1, …"""
        return self.map_forward_thread([Var(f"i{dim}") for dim in range(self.rank)])[0]

    @property
    def index(self) -> list[Any]:
        """The expression of the register over the same variables."""
        return [self.owner(*[Var(f"i{dim}") for dim in range(self.rank)])[1]]

    def get_forward_index(self) -> list[Any]:
        """The expression of the register, as `index`."""
        return self.index

    def get_input_shape(self) -> list[int]:
        """Extents of the tile."""
        return list(self.shape)

    def get_output_shape(self) -> list[int]:
        """Registers of a thread."""
        return [self.registers]

    def get_thread_size(self) -> int:
        """Threads that hold elements."""
        return self.threads

    def map_forward_thread(self, indices: Sequence[Any]) -> list[Any]:
        """The (first) thread that holds an element."""
        return [self.owner(*indices)[0]]

    def map_forward_index(self, indices: Sequence[Any]) -> list[Any]:
        """The register that holds an element."""
        return [self.owner(*indices)[1]]

    def repeat(self, repeats: Sequence[int], repeat_on_thread: bool = False, lower_dim_first: bool = True) -> Any:
        """`repeats[d]` copies along each dimension, over registers or threads. Among the copies the last dimension
        varies fastest, or the first one without `lower_dim_first`."""
        found: Any = self._modes()
        dims = range(self.rank)
        for dim in reversed(dims) if lower_dim_first else dims:
            if repeats[dim] > 1:
                found = repeat_dim(found, dim, int(repeats[dim]), "thread" if repeat_on_thread else "reg")
        return with_methods(found)

    def replicate(self, replicate: int) -> Any:
        """`replicate` times as many threads; the new ones hold what the old ones hold."""
        return with_methods(replicate_threads(self._modes(), int(replicate)))

    def condense_rep_var(self) -> Any:
        """The fragment as it is: replicas are thread modes here, no index of their own."""
        return self

    def is_equal(self, other: Any) -> bool:
        """Whether every element is at the same place in both."""
        return bool(self == other)

    def _modes(self) -> ModeFragment:
        if not isinstance(self, ModeFragment):
            raise LayoutError(
                f"a fragment of {self.shape} given by functions without a regular form",
                rule="only a product of strided modes can be repeated",
                fix="write the whole fragment as one function",
            )
        return ModeFragment(self.shape, self.modes, self.base)


class Modes(FragmentMethods, ModeFragment):
    """A fragment in mode form."""

    __eq__ = FragmentMethods.__eq__
    __hash__ = FragmentMethods.__hash__


class Functions(FragmentMethods, FunctionFragment):
    """A fragment given by functions, answered by tables."""

    __eq__ = FragmentMethods.__eq__
    __hash__ = FragmentMethods.__hash__

    @classmethod
    def of(cls, fragment: FunctionFragment) -> Functions:
        """The same fragment with TileLang's methods."""
        made = cls.__new__(cls)
        made.__dict__.update(fragment.__dict__)
        return made


def with_methods(fragment: Any) -> Any:
    """The same fragment with TileLang's methods."""
    if isinstance(fragment, FragmentMethods):
        return fragment
    if isinstance(fragment, ModeFragment):
        return Modes(fragment.shape, fragment.modes, fragment.base)
    return Functions.of(fragment)


def fragment_of(
    shape: Sequence[int],
    forward_fn: Callable[..., Any] | None = None,
    forward_thread_fn: Callable[..., Any] | None = None,
    replicate: int = 1,
    forward_index_fn: Callable[..., Any] | None = None,
) -> Any:
    """A tile over threads and registers. `forward_fn(*index[, replica])` gives (thread, register), or
    `forward_thread_fn` and `forward_index_fn` do; with `replicate` > 1 the thread also depends on a last argument.
    Without a function for them, a thread's registers take its elements in row-major order."""
    rank = len(shape)
    thread, register = forward_thread_fn, forward_index_fn
    if forward_fn is not None:
        whole, copies = forward_fn, (0,) if replicate > 1 else ()

        def thread(*at: Any) -> Any:
            return whole(*at)[0]

        def register(*at: Any) -> Any:
            return whole(*at[:rank], *copies)[1]

    if thread is None:
        raise LayoutError(
            "a Fragment without a function", rule="forward_fn gives (thread, register), or two functions do"
        )
    extents, thread = tuple(int(e) for e in shape), numbers_of(thread)
    index = register or _places(extents, thread, int(replicate) > 1)
    return with_methods(fragment_from_function(extents, thread, lambda *at: _one(index(*at)), int(replicate)))


def _places(extents: tuple[int, ...], thread: Callable[..., Any], copied: bool) -> Callable[..., Any]:
    """For every element how many before it are of the same thread."""
    grids = list(np.indices(extents, dtype=np.int32))
    owners = evaluate(thread, [*grids, np.zeros(extents, np.int32)] if copied else grids)[0].reshape(-1)
    order = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[order], owners[order])
    places = np.empty(owners.size, np.int64)
    places[order] = np.arange(owners.size) - starts
    table = places.reshape(extents)
    return lambda *at: table[tuple(at)]


class _Either(type):
    """`Fragment(…)` gives one of two forms; isinstance holds for both."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        return fragment_of(*args, **named)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, FragmentMethods)


class Fragment(metaclass=_Either):
    """TileLang's class: calling it is `fragment_of`."""


def _one(index: Any) -> Any:
    """A register index that may be given as a list of one."""
    if isinstance(index, list | tuple):
        if len(index) != 1:
            raise LayoutError(f"{len(index)} register indices", rule="a fragment's register is one number")
        index = index[0]
    return index.value if isinstance(index, Const) else index


def make_gemm_fragment_8x8() -> Any:
    """An 8×8 tile over a warp as matrix instructions hold it: a row is four threads with two neighbours each."""
    return fragment_of((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))


def make_gemm_fragment_8x8_transposed() -> Any:
    """The same with rows and columns exchanged."""
    return fragment_of((8, 8), lambda i, j: (j * 4 + i // 2, i % 2))


def make_fully_replicated_layout_fragment(buffer: Any, threads: int) -> Any:
    """Every thread holds the whole tile, row-major."""
    return with_methods(replicated(tuple(int(getattr(e, "value", e)) for e in buffer.shape), int(threads)))
