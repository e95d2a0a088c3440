"""Pipelines in the kernel: versions of buffers, barriers, and who hands over to whom."""

from __future__ import annotations

from ...ir.dtype import UINT64
from ...ir.expr import Buffer
from ..builder import Builder
from ..faults import fault
from .schedule import WSPipeline, WSRole, WSSchedule, WSSync


class Pipe:
    """A pipeline with its two parties."""

    def __init__(self, pipeline: WSPipeline, schedule: WSSchedule, builder: Builder) -> None:
        self.name, self.depth = pipeline.name, pipeline.depth
        sides: dict[bool, set[str]] = {True: set(), False: set()}
        for scope in schedule.scopes:
            for role, body in scope.bodies.items():
                for step in body:
                    if isinstance(step, WSSync) and step.pipeline == self.name:
                        sides[step.kind.produces].add(role)
        producers, consumers = ([r for r in schedule.roles if r.name in sides[side]] for side in (True, False))
        both = sides[True] & sides[False]
        if both:
            raise fault(
                f"role {min(both)!r} is both a producer and a consumer of pipeline {self.name!r}",
                "a pipeline hands over from one role to others", "give one side to another role",
            )  # fmt: skip
        if len(producers) != 1:
            found = "no producer" if not producers else f"{len(producers)} producers"
            raise fault(f"pipeline {self.name!r} has {found}", "one role fills it", "T.WSSync.producer_acquire")
        if not consumers:
            raise fault(f"pipeline {self.name!r} has no consumer", "some role reads it", "T.WSSync.consumer_wait")
        self.producer: WSRole = producers[0]
        self.consumers: list[WSRole] = consumers
        self.versions = {b: self._version(b, builder) for b in pipeline.buffers}
        self.full = self._barrier(builder, "full", self.producer.threads)
        self.empty = self._barrier(builder, "empty", sum(r.threads for r in consumers))

    def _version(self, b: Buffer, builder: Builder) -> Buffer:
        return Buffer(builder.unique(b.name), (self.depth, *b.shape), b.dtype, "shared", None, b.attrs, loc=b.loc)

    def _barrier(self, builder: Builder, kind: str, count: int) -> Buffer:
        counts = (("count", (count,) * self.depth),)
        return Buffer(builder.unique(f"{self.name}_{kind}"), (self.depth,), UINT64, "barrier", None, counts)
