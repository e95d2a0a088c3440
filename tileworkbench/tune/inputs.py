"""Tensors that the user hands to a search, because made-up ones would not do (indices, lengths, masks)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_given: ContextVar[tuple[Any, ...] | None] = ContextVar("tileworkbench_autotune_inputs", default=None)


@contextmanager
def set_autotune_inputs(*tensors: Any) -> Iterator[None]:
    """Searches within the `with` block run on these tensors: the kernel's inputs in order, outputs left out. One list
    or tuple of them does as well."""
    flat = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    token = _given.set(flat)
    try:
        yield
    finally:
        _given.reset(token)


def get_autotune_inputs() -> Sequence[Any] | None:
    """The tensors of the innermost block, or None outside of one."""
    found = _given.get()
    return None if found is None else list(found)
