"""T.Layout and T.Fragment: layouts that a kernel's author writes as functions; and whether a layout suits a tile."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import LayoutError, TileError
from ..ir.expr import Buffer, Const
from ..layout import Distribution, FunctionLayout, SharedLayout, fragment_from_function
from .builder import Builder
from .faults import fault, shown

PLACED = ("shared", "global", "fragment")  # spaces whose tiles have a layout


def Layout(shape: Sequence[int], forward_fn: Callable[..., Any]) -> FunctionLayout:
    """The layout of a shared tile: `forward_fn` gives the physical index (or indices) of each logical one."""
    return FunctionLayout(_extents("T.Layout", shape), forward_fn)


def Fragment(
    shape: Sequence[int],
    forward_fn: Callable[..., Any] | None = None,
    forward_thread_fn: Callable[..., Any] | None = None,
    replicate: int = 1,
    forward_index_fn: Callable[..., Any] | None = None,
) -> Any:
    """The distribution of a fragment over threads: `forward_fn` gives (thread, register), or two functions do. With
    `replicate` > 1 functions of the thread take the copy's number after the indices; registers are alike in all."""
    extents = _extents("T.Fragment", shape)
    if forward_fn is not None:
        whole, last = forward_fn, int(replicate) - 1
        forward_thread_fn = forward_thread_fn or (lambda *index: whole(*index)[0])
        forward_index_fn = forward_index_fn or (lambda *index: _alike(whole, index, last))
    if forward_thread_fn is None:
        raise fault("T.Fragment without a function", "forward_fn gives (thread, register)", "T.Fragment(shape, fn)")
    thread, index = forward_thread_fn, forward_index_fn or (lambda *_: 0)
    return _called("T.Fragment", extents, lambda: fragment_from_function(extents, thread, index, int(replicate)))


def _alike(whole: Callable[..., Any], index: Sequence[Any], last: int) -> Any:
    """The register of an element, from a function that also takes the number of a copy where there are more."""
    if not last:
        return whole(*index)[1]
    first, other = whole(*index, 0)[1], whole(*index, last)[1]
    if not np.array_equal(first, other):
        raise LayoutError(
            f"T.Fragment with replicate={last + 1}: the registers of copies differ",
            rule="copies of an element lie in the same register of their threads",
            fix="use the copy's number for the thread alone",
        )
    return first


def _extents(what: str, shape: Any) -> tuple[int, ...]:
    entries = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    values = [e.value if isinstance(e, Const) else e for e in entries]
    if not values or not all(hasattr(v, "__index__") and not hasattr(v, "dtype") and int(v) > 0 for v in values):
        raise fault(
            f"{what} of shape {shown(shape)}", "a layout has constant extents of 1 or more", "give a tuple of ints"
        )
    return tuple(int(v) for v in values)


def _called(what: str, shape: tuple[int, ...], make: Callable[[], Any]) -> Any:
    """What is made of the user's function; LanguageError for one that does not take indices and give integers."""
    try:
        return make()
    except TileError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        if isinstance(error, KeyError | ArithmeticError) or "takes" in str(error) or "missing" in str(error):
            told = str(error).split("()", 1)[-1].strip()
        else:
            told = "it gives no integers"
        raise fault(
            f"{what}: the function over {shape}: {told}",
            "a layout's function takes one index a dimension and gives integers",
            f"lambda {', '.join('ijklmn'[: len(shape)])}: …",
        ) from error


def as_layout(builder: Builder, buffer: Buffer, value: Any) -> Any:
    """The layout that an annotation gives to a tile: an object, or a function of the indices; of a fragment it gives
    (thread, register)."""
    if buffer.space not in PLACED:
        raise fault(
            f"a layout for `{buffer.name}`, in {buffer.space} memory",
            "shared tiles, fragments and tensors have layouts",
            "leave it out",
        )
    if callable(value) and not hasattr(value, "shape"):
        value = Fragment(buffer.shape, value) if buffer.space == "fragment" else Layout(buffer.shape, value)
    check_layout(builder, f"`{buffer.name}`", buffer.shape, value, buffer.space == "fragment")
    if isinstance(value, FunctionLayout):
        _called("T.Layout", value.shape, lambda: value.size)  # a function's mistakes show at this line
    return value


def check_layout(builder: Builder, what: str, shape: Sequence[Any], value: Any, spread: bool) -> None:
    """A layout of the right kind and shape, over threads that the kernel has. `spread`: it distributes over threads."""
    kind, word = (Distribution, "T.Fragment") if spread else (SharedLayout, "T.Layout")
    if not isinstance(value, kind):
        raise fault(
            f"{shown(value)} as the layout of {what}",
            "fragments and loops have a T.Fragment, shared tiles and tensors a T.Layout, or a function of the indices",
            f"{word}(shape, function)",
        )
    extents = tuple(e.value if isinstance(e, Const) else e for e in shape)
    if all(isinstance(e, int) for e in extents) and math.prod(extents) != math.prod(value.shape):
        raise fault(
            f"a layout of {tuple(value.shape)} for {what} {extents}",
            "a layout has the shape of what it lays out",
            f"{word}({extents}, …)",
        )
    threads = math.prod(builder.launch.thread_shape) if builder.launch is not None else 0
    if isinstance(value, Distribution) and threads and value.base + value.threads > threads:
        raise fault(
            f"the layout of {what} names thread {value.base + value.threads - 1}",
            f"the block has threads 0 … {threads - 1}",
            f"threads={value.threads}, or fewer threads in the layout",
        )
