"""Rows that order things: Sync, Fence, mbarriers, register hand-over, Trap, and the rows without a meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors import InternalError, NotSimulated
from ...ir.instr import BarArrive, BarExpect, BarInit, BarWait, CallExtern, Fence, ForeignKernel, SetRegs, Sync, Trap
from . import cluster
from .barriers import MBarrier, learn
from .faults import fault
from .memory import check_defined, uniform
from .program import Program
from .warp import Blocked, Warp

Array = Any
FENCES = ("proxy_async", "proxy_async_all", "mbarrier_init", "cta", "gpu", "sys", "tensormap")


def sync(p: Program, s: Sync) -> Callable[[Warp], Iterator[Any]]:
    """Sync of a warp, role, block or grid, or of the threads that share a barrier id."""
    if s.who == "cluster":
        return cluster.sync(s)
    meeting = Sync("block", reason=s.reason, loc=s.loc) if s.who == "grid" else s

    def run(w: Warp) -> Iterator[Any]:
        w.at = s
        yield from w.block.rendezvous.sync(w, meeting)
        if s.who == "grid":
            turn = w.block.turn
            w.block.arrived.add(w)
            while w.block.turn == turn:
                yield Blocked(lambda: w.block.turn != turn, lambda: "waits for the other blocks of the grid")

    return run


def fence(p: Program, s: Fence) -> Callable[[Warp], None]:
    """Fence: proxy_async covers the lane's generic writes so far, mbarrier_init its BarInits; cta, gpu and sys order
    what an atomic hands over between blocks."""
    if s.kind not in FENCES:
        raise InternalError(f"no fence of kind {s.kind!r}", loc=s.loc)

    def run(w: Warp) -> None:
        if s.kind in ("proxy_async", "proxy_async_all"):
            w.block.clocks.fence(w.index, w.threads[w.mask])
        if s.kind in ("mbarrier_init", "proxy_async", "proxy_async_all"):
            w.block.barriers.fence_init(w)
        if s.kind in ("gpu", "sys"):
            w.block.fenced = True
            w.block.acquired |= w.block.pre_acquired

    return run


def barrier(p: Program, bar: Any) -> Callable[[Warp], MBarrier]:
    """Compiled mbarrier operand: its index is defined and the same in all executing lanes."""
    index, buffer = p.scope.value(bar.index), bar.buffer

    def find(w: Warp) -> MBarrier:
        check_defined(w, index.undefined, "the barrier's index")
        return w.block.barriers.find(w, buffer, uniform(w, index.read(w), "the barrier's index"))

    return find


def bar_init(p: Program, s: BarInit) -> Callable[[Warp], None]:
    find = barrier(p, s.bar)
    return lambda w: w.block.barriers.start(w, find(w), s.count)


def bar_arrive(p: Program, s: BarArrive) -> Callable[[Warp], None]:
    """Every executing lane arrives (and announces its bytes) once."""
    find = barrier(p, s.bar)
    size = None if s.bytes is None else p.scope.value(s.bytes)
    remote = None if s.remote is None else p.scope.value(s.remote)

    def run(w: Warp) -> None:
        bar = find(w)
        lanes = w.active()
        if remote is not None:
            check_defined(w, remote.undefined, "the block's number in the cluster")
            ranks = np.broadcast_to(remote.read(w), w.mask.shape)[lanes]
            w.block.event(w, "arrive", s, text=bar.name)
            cluster.arrive_at(w, bar, ranks, lanes)
            return
        threads = w.threads[lanes]
        w.block.barriers.check_use(w, bar, threads)
        expected = 0
        if size is not None:
            check_defined(w, size.undefined, "the announced bytes")
            got = size.read(w)
            expected = int(got[lanes].sum()) if isinstance(got, np.ndarray) else int(got) * lanes.size
        w.block.event(w, "arrive", s, text=bar.name)
        w.block.barriers.arrive(w, bar, lanes.size, w.block.clocks.release(w.index, threads), expected)

    return run


def bar_expect(p: Program, s: BarExpect) -> Callable[[Warp], None]:
    """Every executing lane adds its bytes to the current phase."""
    find, size = barrier(p, s.bar), p.scope.value(s.bytes)

    def run(w: Warp) -> None:
        bar = find(w)
        lanes = w.active()
        w.block.barriers.check_use(w, bar, w.threads[lanes])
        check_defined(w, size.undefined, "the announced bytes")
        got = size.read(w)
        bar.tx += int(got[lanes].sum()) if isinstance(got, np.ndarray) else int(got) * lanes.size
        w.block.event(w, "arrive", s, text=bar.name)

    return run


def bar_wait(p: Program, s: BarWait) -> Callable[[Warp], Iterator[Any]]:
    """Goes on when the current phase's parity differs from `parity`, as try_wait does. `count` is the number of the
    awaited phase from 0; -1 is the phase before the first, which counts as complete."""
    find, parity = barrier(p, s.bar), p.scope.value(s.parity)
    count = None if s.count is None else p.scope.value(s.count)

    def run(w: Warp) -> Iterator[Any]:
        w.at = s
        bar = find(w)
        threads = w.threads[w.mask]
        w.block.barriers.check_use(w, bar, threads)
        check_defined(w, parity.undefined, "the parity")
        wanted = uniform(w, parity.read(w), "the parity") & 1
        number = None if count is None else uniform(w, count.read(w), "the phase number")
        if number is not None:
            _check_number(w, bar, wanted, number)
        while bar.phase & 1 == wanted:
            yield Blocked(lambda: bar.phase & 1 != wanted, lambda: _text(s, bar, wanted, number), lambda: _urge(w, bar))
            if number is not None:
                _check_number(w, bar, wanted, number)
        if number is not None and bar.phase != number + 1:
            raise fault(
                w,
                "phase",
                f"the wait for phase {number} of {bar.name} was let through by the parity of phase {bar.phase - 1}",
                rule="a wait passes when its own phase was the last to complete; parity repeats every two phases",
                fix="the cursor of this wait does not count this barrier's uses",
            )
        bar.seen = max(bar.seen, bar.phase)
        learn(w.block.heard, bar.known)
        if bar.done is not None:
            w.block.clocks.acquire(w.index, threads, *bar.done)
        w.block.event(w, "wait", s, text=bar.name)

    return run


def _check_number(w: Warp, bar: MBarrier, wanted: int, number: int) -> None:
    if number & 1 != wanted:
        raise fault(
            w,
            "phase",
            f"the wait for phase {number} of {bar.name} uses parity {wanted}",
            rule="parity is the phase number modulo 2",
        )
    if bar.phase > number + 1:
        raise fault(
            w,
            "phase",
            f"the wait for phase {number} of {bar.name} comes when phase {bar.phase - 1} is over already",
            other=bar.init,
            rule="a phase is waited for before the next one can complete",
            fix="the other side must wait for this one before it goes on",
        )


def _text(s: BarWait, bar: MBarrier, wanted: int, number: int | None) -> str:
    which = f"phase {number}" if number is not None else f"a phase of parity {wanted}"
    return f"waits for {which} of {bar.name}, which is {bar.state()}" + (f" ({s.reason})" if s.reason else "")


def _urge(w: Warp, bar: MBarrier) -> bool:
    for work in w.block.flying:
        if work.bar is bar:
            w.block.land(work)
            return True
    return False


# --- registers and ends -----------------------------------------------------------------------------------------------
def set_regs(p: Program, s: SetRegs) -> Callable[[Warp], Iterator[Any]]:
    """setmaxnreg. The pool is the processor's 64 Ki registers; a block starts with what its launch gives each thread
    (kernel.attrs["registers"]; else an even share is assumed, and the direction is not checked)."""
    if s.count % 8 or not 24 <= s.count <= 256:
        raise InternalError(f"setmaxnreg {s.count}", rule="a multiple of 8 from 24 to 256", loc=s.loc)
    if s.direction not in ("inc", "dec"):
        raise InternalError(f"setmaxnreg direction {s.direction!r}", loc=s.loc)

    def run(w: Warp) -> Iterator[Any]:
        w.at = s
        _launch_registers(w)
        known = w.block.program.kernel.attrs.get("registers") is not None
        wrong = s.count > w.registers if s.direction == "dec" else s.count < w.registers
        if known and wrong:
            raise fault(
                w, "registers", f"setmaxnreg.{s.direction} to {s.count} from {w.registers} registers a thread",
                rule="dec lowers and inc raises the count",
            )  # fmt: skip
        need = (s.count - w.registers) * w.lanes

        def free() -> int:
            return 65536 - sum(x.registers for x in w.block.warps) * w.lanes

        while need > free():
            yield Blocked(lambda: need <= free(), lambda: f"waits for {need} registers of the pool, which has {free()}")
        w.registers = s.count

    return run


def _launch_registers(w: Warp) -> None:
    if w.registers == 0:
        given = w.block.program.kernel.attrs.get("registers")
        start = int(given) if given else min(248, 65536 // max(1, w.block.threads) // 8 * 8)
        for x in w.block.warps:
            x.registers = start


def trap(p: Program, s: Trap) -> Callable[[Warp], None]:
    """Trap: the message is the fault."""

    def run(w: Warp) -> None:
        raise fault(w, "trap", f"the kernel traps: {s.message}" if s.message else "the kernel traps", lanes=w.mask)

    return run


def raw_source(p: Program, s: ForeignKernel | CallExtern) -> Callable[[Warp], None]:
    """ForeignKernel and CallExtern: refused."""

    name = s.entry if isinstance(s, ForeignKernel) else s.function

    def run(w: Warp) -> None:
        raise NotSimulated(
            f"`{name}`: foreign text has no meaning in the simulator",
            rule="device functions in source text run on a GPU only",
            fix="run it on a GPU, or write the function as a T.macro",
            loc=s.loc,
        )

    return run


def nothing(p: Program, s: Any) -> Callable[[Warp], None]:
    """Prefetch, scheduling hints, clock records and programmatic launch change no value."""
    return lambda w: None
