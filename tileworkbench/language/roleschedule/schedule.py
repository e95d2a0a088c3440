"""What a role schedule is made of: warps with a duty, pipelines of buffers, and each role's order of operations."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...errors import LanguageError
from ...ir.expr import Buffer
from ..faults import fault, shown


class WarpCount(LanguageError, AssertionError):
    """A number of warps that is no whole number of warpgroups."""


class WSSyncKind(enum.Enum):
    """The two waits and the two signals of a pipeline."""

    PRODUCER_ACQUIRE = "producer_acquire"
    PRODUCER_COMMIT = "producer_commit"
    CONSUMER_WAIT = "consumer_wait"
    CONSUMER_RELEASE = "consumer_release"

    def same_as(self, other: object) -> bool:
        """Whether it is the same kind."""
        return self is other

    @property
    def opens(self) -> bool:
        """Whether it binds a version of the pipeline's buffers."""
        return self in (WSSyncKind.PRODUCER_ACQUIRE, WSSyncKind.CONSUMER_WAIT)

    @property
    def produces(self) -> bool:
        """Whether the producer does it."""
        return self in (WSSyncKind.PRODUCER_ACQUIRE, WSSyncKind.PRODUCER_COMMIT)


@dataclass(frozen=True, eq=False)
class WSRole:
    """The warps `warps_lo` … `warps_hi` - 1, which share one duty; `max_nreg`: registers of each of their threads, 0
    leaves them."""

    name: str
    warps_lo: int = field(kw_only=True)
    warps_hi: int = field(kw_only=True)
    max_nreg: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise fault(f"T.WSRole: name={shown(self.name)}", "a role has a name", 'T.WSRole("Producer", …)')
        if not all(isinstance(n, int) for n in (self.warps_lo, self.warps_hi, self.max_nreg)):
            raise fault(f"T.WSRole {self.name!r}: its warps are not ints", "warps and registers are ints", "warps_lo=0")
        if self.warps_lo < 0 or self.warps_hi <= self.warps_lo:
            negative = "a negative warp range" if self.warps_lo < 0 else "no warps"
            raise fault(
                f"T.WSRole {self.name!r}: warps {self.warps_lo} … {self.warps_hi - 1} are {negative}",
                "a role has warps warps_lo … warps_hi - 1",
                "warps_lo=0, warps_hi=4",
            )

    @property
    def warp_lo(self) -> int:
        """Its first warp."""
        return self.warps_lo

    @property
    def warp_hi(self) -> int:
        """The warp after its last."""
        return self.warps_hi

    @property
    def threads(self) -> int:
        """Threads of all its warps."""
        return 32 * (self.warps_hi - self.warps_lo)


@dataclass(frozen=True, eq=False)
class WSPipeline:
    """`depth` versions of each of `buffers`, guarded by a full and an empty barrier a version."""

    name: str
    buffers: Sequence[Buffer]
    depth: int

    def __post_init__(self) -> None:
        if not all(isinstance(b, Buffer) and b.space == "shared" for b in self.buffers):
            raise fault(
                f"T.WSPipeline {self.name!r}: {shown(list(self.buffers))}",
                "a pipeline hands over tiles in shared memory",
                "name what T.alloc_shared made",
            )
        if not isinstance(self.depth, int) or self.depth < 1:
            raise fault(f"T.WSPipeline {self.name!r}: depth={shown(self.depth)}", "it is 1 or more", "depth=2")


class WSInstr:
    """One step of a role."""


@dataclass(frozen=True, eq=False)
class WSOpRef(WSInstr):
    """The operation or loop with this id."""

    id: str


@dataclass(frozen=True, eq=False)
class WSSync(WSInstr):
    """A wait or a signal of a pipeline; `stage`: how many trips behind the loop it runs."""

    kind: WSSyncKind
    pipeline: str
    stage: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.kind, WSSyncKind):
            raise fault(f"T.WSSync: kind={shown(self.kind)}", "it is a T.WSSyncKind", "T.WSSync.producer_acquire(name)")

    @classmethod
    def producer_acquire(cls, pipeline: str, stage: int = 0) -> WSSync:
        """Waits for a free version and binds it."""
        return cls(WSSyncKind.PRODUCER_ACQUIRE, pipeline, stage)

    @classmethod
    def producer_commit(cls, pipeline: str, stage: int = 0) -> WSSync:
        """Says that the version is full."""
        return cls(WSSyncKind.PRODUCER_COMMIT, pipeline, stage)

    @classmethod
    def consumer_wait(cls, pipeline: str, stage: int = 0) -> WSSync:
        """Waits for a full version and binds it."""
        return cls(WSSyncKind.CONSUMER_WAIT, pipeline, stage)

    @classmethod
    def consumer_release(cls, pipeline: str, stage: int = 0) -> WSSync:
        """Says that the version is free."""
        return cls(WSSyncKind.CONSUMER_RELEASE, pipeline, stage)


class WSScope:
    """A loop, or the kernel's body (`WSScope.ROOT`), with the order in which each role runs what stands in it."""

    ROOT: ClassVar[str] = "tl.ws_scope_root"

    def __init__(self, id: str, bodies: Mapping[str, Sequence[Any]]) -> None:
        self.id = id
        self.bodies: dict[str, list[WSInstr]] = {
            role: [WSOpRef(step) if isinstance(step, str) else step for step in steps] for role, steps in bodies.items()
        }
        bad = next((s for steps in self.bodies.values() for s in steps if not isinstance(s, WSInstr)), None)
        if bad is not None:
            raise fault(f"T.WSScope {id!r}: {shown(bad)}", "a step is an id or a T.WSSync", "name an operation's id")


@dataclass(frozen=True, eq=False)
class WSSchedule:
    """The whole schedule of a kernel of `num_warps` warps."""

    num_warps: int
    roles: Sequence[WSRole]
    pipelines: Sequence[WSPipeline]
    scopes: Sequence[WSScope]

    def __post_init__(self) -> None:
        if not isinstance(self.num_warps, int) or self.num_warps <= 0 or self.num_warps % 4:
            raise WarpCount(
                f"T.WSSchedule: num_warps={shown(self.num_warps)}",
                rule="num_warps is a positive multiple of 4: registers are given to whole warpgroups",
                fix="num_warps=8",
            )
