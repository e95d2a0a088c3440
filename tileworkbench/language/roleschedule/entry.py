"""T.annotate_ws_schedule and T.ws_op: a schedule given to the kernel, and ids for statements without annotations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import Loc
from ..builder import Builder, require
from ..faults import fault, shown
from ..remarks import op_id
from .schedule import WSSchedule

KEY = "ws_schedule"  # among a kernel's attributes, until its body is made


def annotate_ws_schedule(schedule: Any) -> None:
    """Runs the kernel by this schedule: its roles, pipelines and orders are followed, or refused where they cannot
    be."""
    builder = require("T.annotate_ws_schedule")
    if not isinstance(schedule, WSSchedule):
        raise fault(f"T.annotate_ws_schedule({shown(schedule)})", "it takes a T.WSSchedule", "T.WSSchedule(8, …)")
    if builder.frame.kind != "kernel":
        raise fault(
            "T.annotate_ws_schedule outside a kernel's own body", "a schedule is of a whole kernel",
            "write it after the allocations, in `with T.Kernel(…)`",
        )  # fmt: skip
    if KEY in builder.attrs:
        raise fault("a second T.annotate_ws_schedule", "a kernel has one schedule", "leave one out")
    builder.attrs[KEY] = (schedule, builder.here)


class Named:
    """`with T.ws_op("name"):` makes its statements one operation, or names the loop that it holds."""

    launch_kind = "ws_op"

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, builder: Builder, names: Any, loc: Loc, keep: Any) -> Iterator[None]:
        """The body stands where it is written."""
        mark = builder.mark(self.name)
        yield None
        mark.stop = len(mark.frame.body)


def ws_op(op_id_: str) -> Named:
    """Gives an id to the statements inside."""
    return Named(op_id(op_id_))
