"""Transfers into shared memory that a kernel asks the copy engine for by the instruction itself: every thread that
comes asks for its own, and the kernel counts their bytes on a barrier."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..errors import LanguageError, SimulationError, TargetError
from ..ir.arith import Facts
from ..ir.expr import Buffer, Const, as_expr
from ..ir.instr import Bar, BulkLoad
from ..ir.node import node
from ..ir.op import Access, Choice, Impl
from ..ir.region import root
from ..ir.stmt import Region, Stmt
from ..ir.uniform import rank
from ..layout import SharedLayout
from ..target import Target
from .barrier import OnBarrier
from .context import Context
from .copies.bulk import UNIT


@node
class Transfer(OnBarrier):
    """`dst`, a part of a shared tile, becomes `src`, a part of a tensor, when the phase of `bar` that is current now is
    told of the bytes."""

    src: Region
    dst: Region

    @property
    def layout(self) -> SharedLayout:
        """How the tile lies whose storage the transfer writes."""
        return plain(root(self.dst.buffer))

    def effects(self) -> tuple[Access, ...]:
        read, written = Access(self.src.buffer, "r", self.src), Access(self.dst.buffer, "w", self.dst)
        return read, written, Access(self.bar.buffer, "atomic", self.bar)

    def mistake(self, found: str, rule: str, fix: str) -> LanguageError:
        return LanguageError(f"T.{self.name}: {found}", rule=rule, fix=fix, loc=self.loc)

    def apart(self, ctx: Context) -> None:
        """Refuses threads that surely come together and ask for one place of the tile."""
        if ctx.threads < 2 or ctx.uniform is None or rank(ctx.flow) < rank("warp"):
            return
        if all(rank(ctx.uniform.scope(e)) >= rank("warp") for e in self.dst.starts):
            raise self.mistake(
                f"all threads of a warp bring the same elements of `{root(self.dst.buffer).name}`",
                "every thread that comes to a transfer asks for one",
                "let one thread ask: if T.get_thread_binding() == 0: …",
            )

    def run(self, env: Any) -> None:
        self.inside(env)
        value, undefined = env.read(self.src), env.undefined(self.src)
        lead, extents = env.lead, env.extents(self.dst)
        value = self.filled(env, value).reshape(value.shape[:lead] + extents)
        if undefined is not None:
            undefined = undefined.reshape(undefined.shape[:lead] + extents)
        source = self.src.buffer
        with env.transfers(self):
            env.write(self.dst, value, source.dtype, False, undefined, origin=source.name)

    def inside(self, env: Any) -> None:
        """Raises SimulationError for a place that the engine does not take."""

    def filled(self, env: Any, value: Any) -> Any:
        """The values with what stands for elements outside the tensor."""
        return value

    def fault(self, env: Any, where: Any, found: str, rule: str, fix: str) -> None:
        """SimulationError if a thread that takes part is at one of these points."""
        if env.happens(np.asarray(where)):
            raise SimulationError(f"T.{self.name}: {found}", rule=rule, fix=fix, loc=self.loc)


@node
class BulkTransfer(Transfer):
    """A run of consecutive bytes: both regions are of one dimension, a buffer's storage as one row."""

    name: ClassVar[str] = "ptx_cp_async_bulk"
    feature: ClassVar[str] = "bulk_copy"

    @property
    def bytes(self) -> int:
        """Bytes that a thread's transfer moves."""
        return int(self.dst.extents[0]) * self.dst.buffer.dtype.bytes

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        OnBarrier.impls(self, facts, target, warps)
        far, near = self.src, self.dst
        if not facts.starts_at(UNIT, root(far.buffer)):
            raise TargetError(
                f"T.{self.name} from `{root(far.buffer).name}`, which may start anywhere",
                rule=f"the copy engine reads from multiples of {UNIT} B",
                fix="pass a tensor that starts at one, or use T.copy",
                loc=self.loc,
            )
        for region in (far, near):
            place = facts.simplify(region.starts[0])
            if isinstance(place, Const) and place.value * region.buffer.dtype.bytes % UNIT:
                raise self.mistake(
                    f"its place in `{root(region.buffer).name}` is byte {place.value * region.buffer.dtype.bytes}",
                    f"the copy engine moves from and to multiples of {UNIT} B", "move whole runs of 16 bytes",
                )  # fmt: skip
            whole = as_expr(region.starts[0]) + region.extents[0] <= region.buffer.shape[0]
            if facts.prove(whole) is False or facts.prove(as_expr(region.starts[0]) >= 0) is False:
                raise self.mistake(
                    f"it leaves `{root(region.buffer).name}`", "all bytes of a transfer are there", "move fewer bytes"
                )
        layouts = {root(near.buffer): (self.layout,)}
        proxies = {near.buffer: "async"}
        made = Impl(self.name, "tma", "thread", "manual", layouts=layouts, proxies=proxies, bytes=self.bytes)
        return Choice((made,))

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        self.apart(ctx)
        to, source = (ctx.address(r.buffer, r.starts) for r in (self.dst, self.src))
        bar = Bar(self.bar.buffer, ctx.facts.simplify(self.bar.starts[0]))
        return (BulkLoad(to, source, self.bytes, bar, asked=True, loc=self.loc),)

    def inside(self, env: Any) -> None:
        for region in (self.src, self.dst):
            buffer, name = region.buffer, root(region.buffer).name
            start, size = env.scalar(region.starts[0]).astype(np.int64), env.scalar(as_expr(buffer.shape[0]))
            self.fault(
                env, start * buffer.dtype.bytes % UNIT != 0, f"its place in `{name}` is not a multiple of {UNIT} B",
                f"the copy engine moves from and to multiples of {UNIT} B", "move whole runs of 16 bytes",
            )  # fmt: skip
            self.fault(
                env, (start < 0) | (start + region.extents[0] > size), f"it leaves `{name}`",
                "all bytes of a transfer are there", "guard it by `if`, or move fewer bytes",
            )  # fmt: skip


@node
class PointerLoad(BulkTransfer):
    """The same by the name of T.tma_load between two pointers."""

    name: ClassVar[str] = "tma_load"


def plain(tile: Buffer) -> SharedLayout:
    """The tile row by row."""
    return SharedLayout.row_major(tuple(map(int, tile.shape)))
