"""Wgmma and WgmmaFence: matrix products of a warpgroup, asynchronous, with operands read through descriptors.

Operands are gathered byte for byte at the addresses that the hardware forms from a descriptor (PTX, matrix descriptor
and canonical layouts). The product may be computed at any time from its issue to the wait for its group; products of
one warpgroup run in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.instr import Reg, Wgmma, WgmmaFence
from .block import Work
from .descriptors import elements, operand
from .faults import fault
from .fragments import shape_of, wgmma_a, wgmma_accumulator
from .groups import GroupWork, add
from .memory import check_defined, uniform
from .program import Program
from .races import Pending
from .registers import register_rows
from .rules import RULES
from .sparse import check_metadata, dense_rows, giving, words_of
from .tensor import accumulate, operand_values
from .warp import Blocked, RegFile, Warp

Array = Any
GROUP = 4


@dataclass(slots=True, eq=False)
class Meeting:
    """The warps of a group that have reached the instruction, each with what it brings."""

    stmt: Wgmma
    warps: list[Warp] = field(default_factory=list)
    brought: list[Any] = field(default_factory=list)
    issued: bool = False


@dataclass(slots=True, eq=False)
class _Part:
    """One warp's share: its accumulator and A registers, the zero flag and the operands' addresses."""

    d: RegFile
    first: int
    zero: bool
    a: Any
    a_first: int
    a_at: Array
    b_at: Array
    e: Any
    e_first: int


def wgmma(p: Program, s: Wgmma) -> Callable[[Warp], Iterator[Any]]:
    """Wgmma: the four warps of a warpgroup meet, bring the same operands, and go on while it runs."""
    m, n, k = shape_of(s.atom)
    plan = _Plan(p, s, n, k)
    if m != 64 or s.d.count != n // 2:
        raise InternalError(f"{s.atom} with {s.d.count} accumulator registers", loc=s.loc)

    def run(w: Warp) -> Iterator[Any]:
        w.at = s
        if not w.full or w.lanes != 32:
            raise fault(w, "divergent", "a wgmma by part of a warp", rule="all lanes of four warps execute it together")
        part = plan.part(w)
        meeting = w.block.meetings.get(w.index // GROUP)
        if meeting is None or meeting.issued:
            meeting = w.block.meetings[w.index // GROUP] = Meeting(s)
        if meeting.stmt is not s:
            raise fault(
                w,
                "divergent",
                "the warps of a group execute different wgmmas",
                other=meeting.stmt,
                rule="four warps of a warpgroup execute the same wgmma",
            )
        meeting.warps.append(w)
        meeting.brought.append(part)
        if len(meeting.warps) == GROUP:
            meeting.issued = True
            plan.issue(meeting)
        while not meeting.issued:
            yield Blocked(
                lambda: meeting.issued, lambda: f"waits for the other warps of its group ({len(meeting.warps)} of 4)"
            )

    return run


class _Plan:
    """A compiled wgmma."""

    def __init__(self, p: Program, s: Wgmma, n: int, k: int) -> None:
        self.s, self.n, self.k, self.number = s, n, k, p.number(s)
        self.b = operand(p, s.b, n, k)
        self.zero = p.scope.value(s.zero)
        self.d_slot, self.d_start = p.scope.register(s.d.buffer), p.scope.value(s.d.start).read
        self.acc, self.table = s.d.buffer.dtype, wgmma_accumulator(n)
        held = k
        if s.e is not None:
            check_metadata(s)
            held = k // 2
            self.e_slot, self.e_start = p.scope.register(s.e.buffer), p.scope.value(s.e.start).read
            width = s.a.buffer.dtype.bytes if isinstance(s.a, Reg) else s.a.addr.buffer.dtype.bytes
            self.giving = np.isin(np.arange(32), giving(k, width, s.selector)[0])
        if isinstance(s.a, Reg):
            self.a, self.a_type = None, s.a.buffer.dtype
            self.a_slot, self.a_start = p.scope.register(s.a.buffer), p.scope.value(s.a.start).read
            self.a_table = wgmma_a(held, self.a_type.bytes)
            self.a_count = s.a.count
            if self.a_count != self.a_table.flat.shape[0]:
                raise InternalError(f"{s.atom} with {self.a_count} A registers", loc=s.loc)
        else:
            self.a, self.a_type = operand(p, s.a, 64, held), s.a.addr.buffer.dtype
        self.b_type = s.b.addr.buffer.dtype

    def part(self, w: Warp) -> _Part:
        """What one warp brings, with its checks."""
        s, d = self.s, w.regs[self.d_slot]
        first = register_rows(w, d, self.d_start(w), s.d.count)
        check_defined(w, self.zero.undefined, "the flag that ignores the old accumulator")
        zero = bool(uniform(w, self.zero.read(w), "the flag that ignores the old accumulator"))
        self._check_fence(w, d, first, s.d.count)
        if not zero and not d.defined[first : first + s.d.count].all():
            raise fault(
                w,
                "undefined",
                f"the accumulator {d.buffer.name} is added to and was never written",
                rule="an accumulator is cleared before its first use",
                fix="give the first wgmma the zero flag",
            )
        d.defined[first : first + s.d.count] = True
        d.writing[first : first + s.d.count] += 1
        a, a_first, a_at = None, 0, None
        if self.a is None:
            a = w.regs[self.a_slot]
            a_first = register_rows(w, a, self.a_start(w), self.a_count)
            self._check_read(w, a, a_first, self.a_count, "A")
        else:
            a_at = self.a.addresses(w)
        e, e_first = None, 0
        if s.e is not None:
            e = w.regs[self.e_slot]
            e_first = register_rows(w, e, self.e_start(w), s.e.count)
            self._check_read(w, e, e_first, s.e.count, "metadata", self.giving)
        return _Part(d, first, zero, a, a_first, a_at, self.b.addresses(w), e, e_first)

    def _check_fence(self, w: Warp, rf: RegFile, first: int, count: int) -> None:
        rule = RULES["wgmma_fence"]
        if not w.wgmma_fenced or rf.touched[first : first + count].any():
            w.block.report(
                fault(
                    w,
                    "wgmma_fence",
                    f"registers of {rf.buffer.name} were used since the last WgmmaFence"
                    if w.wgmma_fenced
                    else "a wgmma without a WgmmaFence before it",
                    rule=str(rule),
                    fix=rule.fix,
                )
            )

    def _check_read(self, w: Warp, rf: RegFile, first: int, count: int, what: str, lanes: Any = slice(None)) -> None:
        self._check_fence(w, rf, first, count)
        if rf.writing[first : first + count].any():
            raise fault(
                w,
                "in_flight",
                f"{what} registers {rf.buffer.name} are still written by a wgmma in flight",
                rule="a wgmma reads registers that are done",
            )
        if not rf.defined[first : first + count, lanes].all():
            raise fault(
                w,
                "undefined",
                f"{what} registers {rf.buffer.name} hold values that were never written",
                rule="all elements of a matrix operand are defined",
            )
        rf.reading[first : first + count] += 1

    def issue(self, meeting: Meeting) -> None:
        """All four warps are here: check their reads of shared memory and send the product off."""
        order = sorted(range(GROUP), key=lambda i: meeting.warps[i].index)
        warps = [meeting.warps[i] for i in order]
        parts = [meeting.brought[i] for i in order]
        block = warps[0].block
        lead = parts[0]
        for w, part in zip(warps, parts, strict=True):
            if (
                part.zero != lead.zero
                or (part.b_at != lead.b_at).any()
                or (lead.a_at is not None and (part.a_at != lead.a_at).any())
            ):
                raise fault(
                    w,
                    "divergent",
                    "the warps of a group give different operands to one wgmma",
                    at=self.s,
                    rule="descriptors and flags are the same in the whole warpgroup",
                )
        reads = [(self.b_bytes(lead.b_at), self.b)]
        if self.a is not None:
            reads.append((self.a_bytes(lead.a_at), self.a))
        queue = block.products.setdefault(warps[0].index // GROUP, [])

        def compute() -> None:
            while queue and queue[0] is not work:
                block.land(queue[0])
            queue.pop(0)
            self.compute(block, parts)

        work = Work(compute, warps[0], self.s)
        queue.append(work)
        for w, part in zip(warps, parts, strict=True):
            self._enter(w, part, [units for units, _ in reads], work)
        for units, read in reads:
            known = block.shared.defined[units]
            if not known.all():
                raise fault(
                    warps[0],
                    "undefined",
                    f"{block.shared.shadow.label(int(units[~known][0]))} was never written",
                    at=self.s,
                    rule="all elements of a matrix operand are defined",
                    fix=f"fill {read.desc.addr.buffer.name}",
                )
        block.submit(work)

    def a_bytes(self, at: Array) -> Array:
        return (at[..., None] + np.arange(self.a_type.bytes)).ravel()

    def b_bytes(self, at: Array) -> Array:
        return (at[..., None] + np.arange(self.b_type.bytes)).ravel()

    def _enter(self, w: Warp, part: _Part, reads: list[Array], work: Work) -> None:
        """Checks one warp's reads and puts its share of the product into its open group."""
        block, shadow, s = w.block, w.block.shared.shadow, self.s
        # The lane that knows least stands for the warp: a wait by an elected lane alone is not enough.
        thread = int(w.threads[-1])
        pending = []
        for units in reads:
            shadow.read(w, thread, units, self.number, via="async")
            one = Pending("wgmma", w, s, block.next_serial())
            shadow.begin_read(one, units)
            pending.append((one, units))

        def finish(waited: Array, reads_only: bool) -> None:
            block.land(work)
            if not group.read_waited:
                group.read_waited = True
                part.d.writing[part.first : part.first + s.d.count] -= 1
                if part.a is not None:
                    part.a.reading[part.a_first : part.a_first + self.a_count] -= 1
                if part.e is not None:
                    part.e.reading[part.e_first : part.e_first + s.e.count] -= 1  # type: ignore[union-attr]
                for one, units in pending:
                    shadow.end_read(one, units)
                    shadow.mark_read(w, None, units, self.number)

        group = GroupWork(w.alive.copy(), finish, s)
        add(w, "wgmma", group)

    def compute(self, block: Any, parts: list[_Part]) -> None:
        """The product of the whole group, from registers and shared bytes as they are now."""
        s, raw = self.s, block.shared.raw
        if self.a is not None:
            a = elements(raw, parts[0].a_at, self.a_type)
        else:
            held = np.concatenate([x.a.data[x.a_first : x.a_first + self.a_count] for x in parts], axis=1)
            a = self.a_table.gather(held)
        b = elements(raw, parts[0].b_at, self.b_type)
        c = None
        if not parts[0].zero:
            c = self.table.gather(np.concatenate([x.d.data[x.first : x.first + s.d.count] for x in parts], axis=1))
        tf32 = self.a_type.bytes == 4 and self.a_type.is_float
        rows = operand_values(a, self.a_type, tf32)
        if s.e is not None:
            words = [words_of(x.e.data[x.e_first : x.e_first + s.e.count]) for x in parts]
            rows = dense_rows(block.warps[0], s, rows, words, self.k, self.a_type.bytes, s.selector)
        product = accumulate(rows, operand_values(b, self.b_type, tf32).T, c, self.acc)
        out = self.table.scatter(product)
        for i, x in enumerate(parts):
            x.d.data[x.first : x.first + s.d.count] = out[:, i * 32 : i * 32 + 32]


def wgmma_fence(p: Program, s: WgmmaFence) -> Callable[[Warp], None]:
    """Orders all register accesses of the warp before later wgmmas; `regs` only tell the device compiler which."""

    def run(w: Warp) -> None:
        w.wgmma_fenced = True
        for rf in w.regs:
            if rf.touched is not None:
                rf.touched[:] = False

    return run
