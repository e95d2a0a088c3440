"""One role's text: its steps in the schedule's order, waits and signals, versions in place of buffers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...errors import InternalError, Loc
from ...ir.dtype import INT32
from ...ir.expr import Buffer, Call, Expr, Load, Var, as_expr, binary, logical
from ...ir.node import Node, map_children, replace, walk
from ...ir.stmt import ZERO, Eval, For, If, Let, Region, Stmt, Store
from ...ops.barrier import BarrierArrive, BarrierWait
from ...ops.copy import Copy
from ...ops.warpgroup import WaitWgmma
from ..builder import Builder
from ..faults import fault
from .hazards import uses
from .pipes import Pipe
from .schedule import WSOpRef, WSRole, WSSync, WSSyncKind
from .steps import Step, Steps, touched


@dataclass(eq=False)
class Span:
    """An open cycle of a pipeline: its version, and whether ordinary stores fill it."""

    pipe: Pipe
    version: Var
    stage: int
    stores: bool = False
    stored: set[Buffer] = field(default_factory=set)
    loaded: set[Buffer] = field(default_factory=set)  # by the copy engine, in this cycle


class RoleText:
    """Writes a role's branch."""

    def __init__(self, builder: Builder, role: WSRole, steps: Steps, pipes: list[Pipe]) -> None:
        self.builder, self.role, self.steps = builder, role, steps
        self.pipes = {p.name: p for p in pipes}
        self.counters: dict[str, Buffer] = {}
        self.cycles: dict[tuple[str, str], int] = {}  # by pipeline and scope, in one trip
        self.open: dict[str, Span] = {}
        self.loc: Loc | None = None
        self.uses: Any = None  # what its whole text touches

    def of(self, pipeline: str) -> dict[str, int]:
        """Its cycles of a pipeline in one trip of each scope."""
        return {scope: n for (name, scope), n in self.cycles.items() if name == pipeline}

    def scope(self, name: str, steps: list[Step], loop: Any) -> list[Stmt]:
        """The role's part of a scope's body."""
        found = {s.name: s for s in steps if s.name}
        values = [s for s in steps if not s.name]
        order = self.steps.bodies[name].get(self.role.name, [])
        self._check_stages(name, order)
        self._check_order(name, [found[i.id] for i in order if isinstance(i, WSOpRef)])
        outer, self.open = self.open, dict(self.open)
        out: list[Stmt] = []
        for instr in order:
            if isinstance(instr, WSSync):
                out += self._sync(name, instr, outer)
                continue
            if not isinstance(instr, WSOpRef):
                raise InternalError(f"{type(instr).__name__} is no step of a role")
            step = found[instr.id]
            while values and values[0].place < step.place:
                out += self._guarded(values[0], values[0].stmts)
                values.pop(0)
            out += self._placed(step)
        left = next((p for p in self.open if p not in outer), None)
        if left is not None:
            what = "acquired" if self.open[left].pipe.producer is self.role else "waited for"
            raise fault(
                f"pipeline {left!r} is still {what} at the end of a scope body, in role {self.role.name!r} of {name!r}",
                "a cycle ends in the body that it began in", "T.WSSync.producer_commit or consumer_release",
            )  # fmt: skip
        self.open = outer
        return out

    def _placed(self, step: Step) -> list[Stmt]:
        self.loc = (step.stmts or (step.loop,))[0].loc  # type: ignore[union-attr]
        if step.loop is None:
            self._check_complete(step)
            return self._guarded(step, tuple(self._operation(s) for s in step.stmts))
        control = (step.loop.start, step.loop.stop) if isinstance(step.loop, For) else (step.loop.cond,)
        self._uniform((*control, *step.guards, *step.stmts))
        inside = self.scope(step.name, step.inside, step.loop)
        if not inside:
            return []
        kept: dict[str, Any] = {"kind": "serial", "attrs": ()} if isinstance(step.loop, For) else {}
        return self._guarded(step, (*step.stmts, replace(step.loop, body=tuple(inside), **kept)))

    def _guarded(self, step: Step, stmts: tuple[Stmt, ...]) -> list[Stmt]:
        if not step.guards or not stmts:
            return list(stmts)
        cond = step.guards[0]
        for guard in step.guards[1:]:
            cond = logical("land", cond, guard)
        return [If(self._bound(cond), stmts, loc=self.loc)]

    def _uniform(self, what: tuple[Any, ...]) -> None:
        guarded = {b for p in self.pipes.values() for b in p.versions}
        read = next((b for b in touched(what) if b in guarded), None)
        if read is not None:
            raise fault(
                f"`{read.name}` of a pipeline decides whether a scope runs",
                "what decides that is uniform across roles", "decide it by a value that every role has", self.loc,
            )  # fmt: skip

    # -- waits and signals ---------------------------------------------------------------------------------------------
    def _sync(self, scope: str, s: WSSync, outer: dict[str, Span]) -> list[Stmt]:
        pipe = self.pipes.get(s.pipeline)
        if pipe is None:
            raise fault(f"unknown pipeline {s.pipeline!r} in {scope!r}", "pipelines are T.WSPipeline's", "rename it")
        where = f"pipeline {pipe.name!r} in role {self.role.name!r} of scope {scope!r}"
        if s.kind.opens:
            if pipe.name in self.open:
                raise fault(f"{where} is acquired twice", "one cycle at a time", "T.WSSync.producer_commit before it")
            return self._begin(pipe, s)
        if pipe.name not in self.open or pipe.name in outer:
            raise fault(f"{where} is signalled outside an open span", "a signal ends a cycle", f"open it in {scope!r}")
        span = self.open.pop(pipe.name)
        if span.stage != s.stage:
            raise fault(
                f"{where}: stages {span.stage} and {s.stage}", "pairs must share one stage", f"stage={span.stage}"
            )
        self.cycles[pipe.name, scope] = self.cycles.get((pipe.name, scope), 0) + 1
        produces = s.kind is WSSyncKind.PRODUCER_COMMIT
        out: list[Stmt] = []
        if produces and span.stores:  # a product may read the tile by the asynchronous proxy
            out.append(Eval(Call("fence_proxy_async", (), dtype=INT32)))
        out.append(BarrierArrive(self._bar(pipe.full if produces else pipe.empty, span.version)))
        counter = self.counters[pipe.name]
        out.append(Store(counter, (ZERO,), Load(counter, (ZERO,)) + as_expr(1, INT32)))
        return out

    def _begin(self, pipe: Pipe, s: WSSync) -> list[Stmt]:
        counter = self.counters.get(pipe.name)
        if counter is None:
            name = self.builder.unique(f"{pipe.name}_cycle")
            counter = self.counters[pipe.name] = Buffer(name, (1,), INT32, "var", None, ())
        version = Var(self.builder.unique(f"{pipe.name}_version"), dtype=INT32)
        parity = Var(self.builder.unique(f"{pipe.name}_parity"), dtype=INT32)
        cycle = Load(counter, (ZERO,))
        turn = binary("floordiv", cycle, pipe.depth)
        acquires = s.kind is WSSyncKind.PRODUCER_ACQUIRE
        self.open[pipe.name] = Span(pipe, version, s.stage)
        return [
            Let(version, binary("floormod", cycle, pipe.depth)),
            # Every version is free to begin with: the phase before the first counts as over.
            Let(parity, binary("floormod", turn + as_expr(int(acquires), INT32), 2)),
            BarrierWait(self._bar(pipe.empty if acquires else pipe.full, version), parity),
        ]

    def _bar(self, buffer: Buffer, version: Expr) -> Region:
        return Region(buffer, (version,), (1,))

    # -- operations ----------------------------------------------------------------------------------------------------
    def _operation(self, s: Stmt) -> Stmt:
        read, written = uses((s,))
        self._check_finished(read | written, read, s)
        filled = [span for span in self.open.values() if written & set(span.pipe.versions)]
        for span in filled:
            if span.pipe.producer is not self.role:
                raise fault(
                    f"role {self.role.name!r} writes a tile of pipeline {span.pipe.name!r}",
                    "only its producer fills a pipeline", "write it in the producer", s.loc,
                )  # fmt: skip
        if len(filled) == 1 and isinstance(s, Copy) and s.src.buffer.space == "global":
            load = self._load(s, filled[0])
            if load is not None:
                moved: Stmt = self._bound(load)
                return moved
        for span in filled:
            span.stores = True
            span.stored |= written
        changed: Stmt = self._bound(s)
        return changed

    def _check_finished(self, touched: set[Buffer], read: set[Buffer], s: Stmt) -> None:
        """A producer works with what it has stored in this cycle, not with copies under way or an older version."""
        for span in (p for p in self.open.values() if p.pipe.producer is self.role):
            under_way = next((b for b in touched if b in span.loaded), None)
            if under_way is not None:
                raise fault(
                    f"`{under_way.name}` is used by its producer {self.role.name!r} while the engine fills it",
                    "a copy by the engine is complete for the consumer, after its wait",
                    "disable_tma=True on the copy, or let the consumer do this", s.loc,
                )  # fmt: skip
            old = next((b for b in read if b in span.pipe.versions and b not in span.stored), None)
            if old is not None:
                raise fault(
                    f"`{old.name}` is read by its producer {self.role.name!r} before it is written",
                    "a new version of a pipeline's tile holds nothing yet", "write it whole in each cycle", s.loc,
                )  # fmt: skip

    def _load(self, s: Copy, span: Span) -> Copy | None:
        """The copy by the engine, its bytes counted by the pipeline's barrier; None where it goes another way."""
        if s.hint("force") == "async":
            raise fault(
                "T.async_copy in a role schedule", "a producer's copy is by the engine, or complete when it ends",
                "T.copy", s.loc,
            )  # fmt: skip
        # Stores that come before it would have to be seen by the engine.
        if span.stores or s.hint("disable_tma") or s.hint("prefer_instruction") not in (None, "tma"):
            return None
        span.loaded.add(s.dst.buffer)
        hints = tuple((k, v) for k, v in s.hints if k != "prefer_instruction")
        return replace(s, hints=(*hints, ("force", "tma")), barrier=self._bar(span.pipe.full, span.version))

    def _bound(self, n: Any) -> Any:
        """Versions in place of the buffers of open cycles; a pipeline's buffer outside one is a fault."""
        guarded = {b: p for p in self.pipes.values() for b in p.versions}

        def swap(m: Node) -> Node:
            buffer = getattr(m, "buffer", None)
            if isinstance(m, Region | Load | Store) and buffer in guarded:
                pipe = guarded[buffer]
                span = self.open.get(pipe.name)
                if span is None:
                    raise fault(
                        f"`{buffer.name}` outside an open span of pipeline {pipe.name!r}, in role {self.role.name!r}",
                        "a pipeline's tiles are used between its wait and its signal",
                        "T.WSSync.consumer_wait or producer_acquire before it", self.loc,
                    )  # fmt: skip
                m = map_children(m, swap)
                made = pipe.versions[buffer]
                if isinstance(m, Region):
                    return replace(m, buffer=made, starts=(span.version, *m.starts), extents=(1, *m.extents))
                return replace(m, buffer=made, indices=(span.version, *m.indices))
            return map_children(m, swap) if m._links else m

        return swap(n)

    def _check_complete(self, step: Step) -> None:
        """What a step starts is over when the next step begins."""
        started = next((n for n in walk(step.stmts) if dict(getattr(n, "hints", ())).get("force") == "wgmma"), None)
        if started is not None and not any(isinstance(n, WaitWgmma) and n.pending == 0 for n in walk(step.stmts)):
            raise fault(
                f"T.wgmma_gemm in the step {step.name!r}, which does not wait for it",
                "what a step of a schedule starts is over when it ends",
                "T.gemm, or T.wait_wgmma(0) in the same T.ws_op", started.loc,
            )  # fmt: skip

    # -- checks --------------------------------------------------------------------------------------------------------
    def _check_stages(self, name: str, order: list[Any]) -> None:
        stages = {s.stage for s in order if isinstance(s, WSSync)}
        pairs: dict[str, int] = {}
        for s in (s for s in order if isinstance(s, WSSync)):
            if pairs.setdefault(s.pipeline, s.stage) != s.stage:
                raise fault(
                    f"pipeline {s.pipeline!r} in role {self.role.name!r}: stages {pairs[s.pipeline]} and {s.stage}",
                    "pairs must share one stage", f"stage={pairs[s.pipeline]}",
                )  # fmt: skip
        if len(stages) > 1:
            raise fault(
                f"stages {' and '.join(map(str, sorted(stages)))} in role {self.role.name!r} of scope {name!r}",
                "the steps of a role's trip run in one trip: stages that differ are not followed yet",
                "give the role's waits and signals one stage",
            )

    def _check_order(self, name: str, steps: list[Step]) -> None:
        """Steps that touch the same tile keep the order of the text."""
        used = [(s, uses((*s.stmts, *(s.loop.body if s.loop is not None else ())))) for s in steps]
        for i, (early, (taken, made)) in enumerate(used):
            for late, (reads, writes) in used[i + 1 :]:
                if late.place < early.place and (made & (reads | writes) or writes & taken):
                    raise fault(
                        f"role {self.role.name!r} of scope {name!r} does {early.name!r} before {late.name!r}",
                        "steps that touch the same tile keep the order of the text", "exchange them in the body",
                    )  # fmt: skip
