"""T.Pipelined: a serial loop whose copies run ahead, by the compiler's schedule or by the user's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ir.stmt import For
from .builder import Builder
from .faults import fault, shown
from .loopbodies import Loop, ranged
from .ownschedule import followed


def check_schedule(**given: Any) -> None:
    """A pipeline's schedule, where the user writes one: lists of ints, one entry a statement."""
    for word, value in given.items():
        if value is not None and not _numbers(value):
            raise fault(
                f"T.Pipelined: {word}={shown(value)}",
                "order, stage, sync and group are lists of ints, one entry a statement of the loop",
                f"leave {word} out: the compiler schedules the loop",
            )
    order, stage = given["order"], given["stage"]
    if order is not None and stage is not None and len(order) != len(stage):
        raise fault(
            f"T.Pipelined: order has {len(order)} entries, stage {len(stage)}",
            "order, stage, sync and group are lists of ints, one entry a statement of the loop",
            "give both as many entries as the loop has statements",
        )


def _numbers(value: Any) -> bool:
    """A list of ints, or of such lists."""
    return isinstance(value, list | tuple) and all(isinstance(v, int) or _numbers(v) for v in value)


@dataclass(eq=False)
class PipelinedLoop(Loop):
    """T.Pipelined over a range."""

    def closed(self, builder: Builder, loop: For) -> For:
        made, notes = followed(loop)
        builder.attrs["notes"] = (*builder.attrs.get("notes", ()), *notes)
        return made


def Pipelined(
    start: Any,
    stop: Any = None,
    num_stages: int = 0,
    order: Any = None,
    stage: Any = None,
    sync: Any = None,
    group: Any = None,
    annotations: Any = None,
) -> Loop:
    """A serial loop whose copies run ahead of their use; the meaning is the serial loop's. Its tiles have `num_stages`
    versions (0: no pipeline). `order` and `stage` are the user's own schedule, one entry a statement: its place in the
    emitted trip, and how many trips after the first stage it works on the same data; without `num_stages` there are
    max(stage) + 1 versions. What of it the compiler does otherwise stands in the plan's notes."""
    if not isinstance(num_stages, int) or isinstance(num_stages, bool) or num_stages < 0:
        raise fault(
            f"T.Pipelined: num_stages is {shown(num_stages)}",
            "num_stages is an int ≥ 0",
            "0 means no software pipeline",
        )
    check_schedule(order=order, stage=stage, sync=sync, group=group)
    hints = {"num_stages": num_stages, "order": order or None, "stage": stage or None}
    hints |= {"sync": sync or None, "group": group or None}
    return ranged("Pipelined", start, stop, None, {**hints, "annotations": annotations}, PipelinedLoop)
