"""Parameters that a call may leave out and gets back instead: which they are, and the arrays made for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..codegen.source import TensorParam
from ..errors import OptionError
from . import arrays
from .plan import Plan


def places(params: Sequence[Any], out_idx: Sequence[int]) -> tuple[int, ...]:
    """The parameters that `out_idx` names, ascending. OptionError where it names none, or one that is no tensor."""
    found = []
    for index in out_idx:
        if not -len(params) <= index < len(params) or not isinstance(params[index], TensorParam):
            raise OptionError(
                f"out_idx {index} of {len(params)} parameters",
                rule="out_idx names tensor parameters",
                fix="out_idx=-1 for the last parameter",
            )
        found.append(index % len(params))
    return tuple(sorted(set(found)))


def with_outputs(plan: Plan, pointers: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """(what the call returns, all addresses): the plan's outputs are made anew, and their addresses put in place."""
    made = [arrays.empty(plan.library, plan.device, o.shape, o.dtype) for o in plan.outputs]
    every = list(pointers)
    for output, array in zip(plan.outputs, made, strict=True):
        every.insert(output.place, array.data_ptr() if plan.library == "torch" else array.data.ptr)
    return as_result(made), tuple(every)


def as_result(made: list[Any]) -> Any:
    """None, the one array, or the list of them."""
    return (made[0] if len(made) == 1 else made) if made else None
