"""T.copy: moves a tile between any two memory spaces, converting the dtype elementwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from dataclasses import replace as changed
from typing import Any, ClassVar

from ..errors import LanguageError, ShapeError, TargetError
from ..ir.arith import Facts
from ..ir.expr import Buffer
from ..ir.node import node
from ..ir.op import Access, Choice, Impl, Op, Refusal
from ..ir.stmt import Region, Stmt
from ..target import Target
from .context import Context
from .copies import bulk, cp_async, matrix, tma, vector
from .copies.pairs import as_parallel, sized_late, walked
from .hints import check_width, check_word
from .parallel import Parallel
from .private import SPACES as PRIVATE
from .private import each_thread

POLICIES = ("evict_normal", "evict_first", "evict_last")
CALLED = {"tma": "T.tma_copy", "async": "T.async_copy"}  # what the user wrote, by the forced engine
WANTED = {"tma": ("bulk", "tma"), "cp_async": ("cp.async",), "async": ("cp.async",), "sync": ("vector",)}


@node
class Copy(Op):
    """`dst = src` elementwise, mapped in row-major order over the extents that are not 1. Elements outside a global
    source read as 0; stores outside a global destination are dropped.

    hints: coalesced_width, disable_tma, eviction_policy, prefer_instruction ("tma", "cp_async", "sync"), loop_layout,
    force ("tma" or "async" for T.tma_copy and T.async_copy). `barrier` counts the bytes of T.tma_copy."""

    name: ClassVar[str] = "copy"
    src: Region
    dst: Region
    hints: tuple[tuple[str, Any], ...] = field(default=())
    barrier: Region | None = None

    @property
    def manual(self) -> bool:
        """The kernel itself waits for this copy."""
        return self.hint("force") is not None

    @property
    def wanted(self) -> Any:
        """The instruction that hints ask for, if any."""
        return self.hint("force") or self.hint("prefer_instruction")

    def hint(self, key: str, default: Any = None) -> Any:
        return dict(self.hints).get(key, default)

    def effects(self) -> tuple[Access, ...]:
        return Access(self.src.buffer, "r", self.src), Access(self.dst.buffer, "w", self.dst)

    def run(self, env: Any) -> None:
        value = env.read(self.src)
        undefined = env.undefined(self.src)
        lead, extents = env.lead, env.extents(self.dst)
        fit_shapes(env.extents(self.src), extents, self)
        value = value.reshape(value.shape[:lead] + extents)
        if undefined is not None:
            undefined = undefined.reshape(undefined.shape[:lead] + extents)
        source = self.src.buffer
        env.write(self.dst, value, source.dtype, env.frozen(source), undefined, origin=source.name)

    def text(self, show: Any) -> str:
        hints = "".join(f", {key}={show(value)}" for key, value in self.hints)
        bar = f", barrier={show(self.barrier)}" if self.barrier is not None else ""
        return f"T.copy({show.like(self.src, self.dst)}, {show.like(self.dst, self.src)}{hints}{bar})"

    def element_loop(self) -> Parallel | None:
        late = sized_late(self.dst) and self.wanted in (None, "sync")
        return as_parallel(self) if late else None

    def canonical(self) -> tuple[Stmt, ...]:
        loop = self.element_loop()
        if loop is not None:
            return loop.canonical()
        if self.src.buffer.space not in PRIVATE and self.dst.buffer.space not in PRIVATE:
            return (self,)
        p = as_parallel(self)
        return each_thread(p.vars, p.extents, p.body, self.loc)

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        if sized_late(self.dst):
            raise self._refused((Refusal(str(self.wanted), "its extents are known only at run time"),))
        found: list[Impl | Refusal] = [tma.tma_impl(self, facts, target), cp_async.cp_async_impl(self, facts, target)]
        spaces = {self.src.buffer.space, self.dst.buffer.space}
        if (
            spaces == {"global", "shared"} and max(len(walked(r)) for r in (self.src, self.dst)) <= 1
        ):  # one run of bytes
            found.insert(0, bulk.bulk_impl(self, facts, target))
        staged = self.src.buffer.space == "global" and self.dst.buffer.space == "shared"
        found.append(vector.vector_impl(staged=staged))
        ranked = [i for i in found if isinstance(i, Impl)]
        refused = [r for r in found if isinstance(r, Refusal)]
        wanted = self.wanted
        if wanted is not None:
            ranked = [i for i in ranked if i.name.startswith(WANTED.get(wanted, (wanted,)))]
        if not ranked:
            told = [r for r in refused if r.name.startswith(WANTED.get(wanted, (wanted,)))]
            raise self._refused(told or refused)
        if self.manual:
            ranked = [changed(i, completion="manual") for i in ranked]
        return Choice(tuple(ranked), tuple(refused))

    def _refused(self, told: Sequence[Refusal]) -> TargetError:
        """The error for a hint that no implementation can meet, with their reasons."""
        reasons = "; ".join(f"{r.name}: {r.reason}" for r in told)
        return TargetError(
            f"{CALLED.get(self.hint('force'), 'T.copy')} cannot use {self.wanted} here ({reasons})",
            rule="a hint is a constraint on the choice of instruction",
            fix="drop the hint, or meet the condition",
            loc=self.loc,
        )

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        return vector.infer_layouts(self, known, threads, free) if impl.name == "vector" else {}

    def misfits(self, impl: Impl, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
        return vector.misfits(self, known, threads) if impl.name == "vector" else ()

    def settle(self, impl: Impl, known: Mapping[Buffer, Any], target: Target, threads: int) -> Impl:
        if impl.name.startswith("cp.async"):
            return self._laid_out(impl, known)
        if impl.name != "vector" or self.hint("prefer_instruction") == "sync" or self.hint("loop_layout") is not None:
            return impl
        return matrix.matrix_impl(self, known, target, threads) or impl

    def _laid_out(self, impl: Impl, known: Mapping[Buffer, Any]) -> Impl:
        """cp.async in runs that an annotated layout keeps, else ordinary loads and stores."""
        found = cp_async.fitted(self, impl, known)
        if found is None and self.manual:
            raise TargetError(
                f"T.copy cannot use cp.async into `{self.dst.buffer.name}`",
                rule="its layout keeps runs of 4, 8 or 16 bytes in one piece",
                fix="drop the layout's annotation, or use T.copy",
                loc=self.loc,
            )
        return found or vector.vector_impl(staged=True)

    def check(self) -> None:
        check_word(self, "eviction_policy", self.hint("eviction_policy"), POLICIES)
        check_word(self, "prefer_instruction", self.hint("prefer_instruction"), tuple(WANTED))
        check_width(self, self.hint("coalesced_width"))
        if self.hint("disable_tma") and "tma" in (self.hint("prefer_instruction"), self.hint("force")):
            raise LanguageError(
                "T.copy: TMA is both asked for and turned off by disable_tma",
                rule="the hints of a copy agree",
                fix="leave one of the two out",
                loc=self.loc,
            )

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        policy = str(self.hint("eviction_policy", ""))
        with ctx.evicting("" if policy == "evict_normal" else policy):
            return _ISSUES.get(impl.name, cp_async.issue)(self, impl, ctx)

    def complete(self, impl: Impl, ctx: Context, pending: int = 0) -> tuple[Stmt, ...]:
        made = _COMPLETIONS.get(impl.name)
        if made is None:
            return ()
        with ctx.evicting(str(self.hint("eviction_policy", ""))):
            return made(self, impl, ctx)


_Half = Callable[[Copy, Impl, Context], tuple[Stmt, ...]]
# What begins a copy, by the name of its implementation (all others are cp.async), and what waits for it where it does
# so by itself.
_ISSUES: dict[str, _Half] = {
    "tma": tma.issue,
    "bulk": bulk.issue,
    "vector": vector.issue,
    "ldmatrix": matrix.issue,
    "stmatrix": matrix.issue,
}
_COMPLETIONS: dict[str, _Half] = {"tma": tma.complete, "bulk": bulk.complete, "vector": vector.complete}


def fit_shapes(a: tuple[int, ...], b: tuple[int, ...], op: Op) -> None:
    """Both regions have the same extents once those of 1 are dropped, else ShapeError."""
    if [n for n in a if n != 1] != [n for n in b if n != 1]:
        raise ShapeError(
            f"T.{op.name}: the source region is {a}, the destination {b}",
            rule="the extents other than 1 are equal, in order",
            fix="give both sides the same extents",
            loc=op.loc,
        )
