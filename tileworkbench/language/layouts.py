"""T.Layout and T.Fragment: layouts that a kernel's author writes as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..layout import FunctionLayout, fragment_from_function
from .faults import fault


def Layout(shape: Sequence[int], forward_fn: Callable[..., Any]) -> FunctionLayout:
    """The layout of a shared tile: `forward_fn` gives the physical index (or indices) of each logical one."""
    return FunctionLayout(tuple(int(e) for e in shape), forward_fn)


def Fragment(
    shape: Sequence[int],
    forward_fn: Callable[..., Any] | None = None,
    forward_thread_fn: Callable[..., Any] | None = None,
    replicate: int = 1,
    forward_index_fn: Callable[..., Any] | None = None,
) -> Any:
    """The distribution of a fragment over threads: `forward_fn` gives (thread, register), or two functions do."""
    if forward_fn is not None:
        whole = forward_fn
        forward_thread_fn = forward_thread_fn or (lambda *index: whole(*index)[0])
        forward_index_fn = forward_index_fn or (lambda *index: whole(*index[: len(shape)])[1])
    if forward_thread_fn is None:
        raise fault("T.Fragment without a function", "forward_fn gives (thread, register)", "T.Fragment(shape, fn)")
    index = forward_index_fn or (lambda *_: 0)
    return fragment_from_function(tuple(int(e) for e in shape), forward_thread_fn, index, int(replicate))
