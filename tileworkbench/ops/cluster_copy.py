"""T.copy_cluster into another block: a tile of this block's registers or shared memory, stored to the shared memory of
a block of the same cluster by ordinary stores of the threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..errors import LanguageError
from ..ir.arith import Facts
from ..ir.expr import Buffer, Expr
from ..ir.instr import Bar, BarArrive, Sync
from ..ir.node import node
from ..ir.op import Access, Choice, Impl
from ..ir.stmt import Region, Stmt
from ..target import Target
from .context import Context
from .copies import vector
from .copies.pairs import sized_late
from .copy import Copy
from .manual_op import ManualOp


@node
class ClusterCopy(ManualOp):
    """`dst` of the cluster's block `block` (its rank) becomes `src` of this block. When all threads have stored,
    `barrier`, if given, is arrived on once in that block. The kernel itself sees to it that the block has begun, that
    nobody uses the tile meanwhile, and that its readers wait."""

    name: ClassVar[str] = "copy_cluster"
    feature: ClassVar[str] = "cluster"
    src: Region
    dst: Region
    block: Expr
    barrier: Region | None = None

    @property
    def local(self) -> Copy:
        """The same copy within one block."""
        return Copy(self.src, self.dst, loc=self.loc)

    def effects(self) -> tuple[Access, ...]:
        bar = (Access(self.barrier.buffer, "atomic", self.barrier),) if self.barrier is not None else ()
        return (*self.local.effects(), *bar)

    def reaches(self) -> tuple[Buffer, ...]:
        return (self.dst.buffer,)

    def check(self) -> None:
        source, target = self.src.buffer, self.dst.buffer
        for buffer, spaces in ((source, ("shared", "fragment")), (target, ("shared",))):
            if buffer.space not in spaces:
                raise self._mistake(
                    f"`{buffer.name}` is in {buffer.space} memory", f"it copies from {' or '.join(spaces)} memory"
                    if buffer is source else "it copies to shared memory", "copy to a tile first",
                )  # fmt: skip
        if target.dtype.is_packed:
            raise self._mistake(
                f"elements of `{target.name}` share bytes", "it stores whole bytes", "copy the bytes (T.view)"
            )
        if sized_late(self.dst) or sized_late(self.src):
            raise self._mistake(
                "the size of the tile is known only at run time", "a tile has constant extents", "copy a whole tile"
            )

    def _mistake(self, found: str, rule: str, fix: str) -> LanguageError:
        return LanguageError(f"T.copy_cluster to another block: {found}", rule=rule, fix=fix, loc=self.loc)

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        ManualOp.impls(self, facts, target, warps)
        return Choice((vector.vector_impl(),))

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        return vector.infer_layouts(self.local, known, threads, free)

    def misfits(self, impl: Impl, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
        return vector.misfits(self.local, known, threads)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        block = ctx.facts.simplify(self.block)
        with ctx.storing_in(self.dst.buffer, block):
            stores = vector.issue(self.local, impl, ctx)
        if self.barrier is None:
            return stores
        bar = Bar(self.barrier.buffer, ctx.facts.simplify(self.barrier.starts[0]))
        told = "the tile of another block is there"
        return (
            *stores,
            Sync("role", reason="all threads have stored to the other block", loc=self.loc),
            *ctx.elect(BarArrive(bar, None, block, told, loc=self.loc)),
        )

    def run(self, env: Any) -> None:
        value = env.read(self.src)
        undefined = env.undefined(self.src)
        lead, extents = env.lead, env.extents(self.dst)
        value = value.reshape(value.shape[:lead] + extents)
        if undefined is not None:
            undefined = undefined.reshape(undefined.shape[:lead] + extents)
        env.give(self, value, undefined)

    def text(self, show: Any) -> str:
        bar = f", remote_barrier={show(self.barrier)}" if self.barrier is not None else ""
        return f"T.copy_cluster({show(self.src)}, {show(self.dst)}, dst_block={show(self.block)}{bar})"
