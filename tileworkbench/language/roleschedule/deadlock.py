"""Whether the roles of a schedule can always go on: their waits and signals played through for a few trips."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..faults import fault
from .pipes import Pipe
from .schedule import WSOpRef, WSRole, WSScope, WSSync, WSSyncKind
from .steps import Step, Steps

TRIPS = 3  # of each loop beyond the places of the deepest pipeline: the pattern repeats by then
EVENTS = 20_000  # of a role; a schedule of more is not played through


def check_progress(roles: list[WSRole], steps: Steps, pipes: list[Pipe]) -> None:
    """Refuses roles that wait for one another for ever."""
    by_name = {p.name: p for p in pipes}
    trips = TRIPS + max((p.depth for p in pipes), default=0)
    played = {r.name: list(islice(_played(WSScope.ROOT, steps.root, r.name, steps, trips), EVENTS)) for r in roles}
    if any(len(events) == EVENTS for events in played.values()):
        return
    running = {name: iter(events) for name, events in played.items()}
    done = {(name, kind): dict.fromkeys(running, 0) for name in by_name for kind in WSSyncKind}
    waiting: dict[str, WSSync | None] = {name: next(events, None) for name, events in running.items()}
    moved = True
    while moved:
        moved = False
        for name, events in running.items():
            while (sync := waiting[name]) is not None and _ready(sync, name, by_name[sync.pipeline], done):
                done[sync.pipeline, sync.kind][name] += 1
                waiting[name], moved = next(events, None), True
    stuck = {name: sync for name, sync in waiting.items() if sync is not None}
    if stuck:
        told = "; ".join(f"role {name!r} waits at {s.kind.value} of {s.pipeline!r}" for name, s in stuck.items())
        raise fault(
            f"deadlock: {told}", "some role can always go on", "exchange waits and signals, or deepen a pipeline"
        )


def _ready(sync: WSSync, role: str, pipe: Pipe, done: dict[tuple[str, WSSyncKind], dict[str, int]]) -> bool:
    mine = done[pipe.name, sync.kind][role]
    if sync.kind is WSSyncKind.PRODUCER_ACQUIRE:
        released = done[pipe.name, WSSyncKind.CONSUMER_RELEASE]
        return mine < min(released[c.name] for c in pipe.consumers) + pipe.depth
    if sync.kind is WSSyncKind.CONSUMER_WAIT:
        return mine < done[pipe.name, WSSyncKind.PRODUCER_COMMIT][pipe.producer.name]
    return True


def _played(scope: str, found: list[Step], role: str, steps: Steps, trips: int) -> Iterator[WSSync]:
    loops = {s.name: s for s in found if s.loop is not None}
    for step in steps.bodies[scope].get(role, []):
        if isinstance(step, WSSync):
            yield step
        elif isinstance(step, WSOpRef) and step.id in loops:
            for _ in range(trips):
                yield from _played(step.id, loops[step.id].inside, role, steps, trips)
