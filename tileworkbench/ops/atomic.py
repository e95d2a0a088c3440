"""T.atomic_*: read-modify-write of elements or whole tiles of global or shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..errors import TargetError
from ..ir.arith import Facts
from ..ir.expr import Buffer, Expr, Load, Var, as_expr, binary, cast
from ..ir.instr import BulkStore, TmaStore
from ..ir.node import Node, node, replace, rewrite
from ..ir.op import Access, Choice, Impl, Op, Refusal
from ..ir.stmt import ONE, ZERO, For, Region, Stmt, Store
from ..target import Target
from .atomic_element import AtomicElement
from .context import Context
from .copies import bulk, tma
from .copies.pairs import at, extent, sized_late, walked
from .copy import Copy
from .elementwise import emit_simt
from .parallel import Parallel
from .private import SPACES as PRIVATE
from .private import each_thread

# What a reducing store combines, in the PTX manual's tables of cp.reduce.async.bulk and its tensor form.
_ORDERED = ("float16", "bfloat16", "int32", "uint32", "int64", "uint64")
_COMBINED = {"add": ("float16", "bfloat16", "float32", "int32", "uint32", "uint64"), "max": _ORDERED, "min": _ORDERED}
_BULK_SUMS = ("int64", "float64")


@node
class AtomicTile(Op):
    """`dst[...] = kind(dst[...], value)` for each element, atomically. `value` is a tile of the same extents, or a
    scalar: used once an element where all threads share it, else once a thread and element. kind: add, max, min.
    use_tma asks for a bulk reduction from shared memory."""

    name: ClassVar[str] = "atomic"
    kind: str
    dst: Region
    value: Region | Expr
    order: str = "relaxed"
    use_tma: bool = False

    def effects(self) -> tuple[Access, ...]:
        read = (Access(self.value.buffer, "r", self.value),) if isinstance(self.value, Region) else ()
        return (*read, Access(self.dst.buffer, "atomic", self.dst))

    def as_parallel(self) -> Parallel:
        """The update as an element loop of atomic operations."""
        shape = tuple(extent(self.dst.extents[d]) for d in walked(self.dst))
        loop_vars = tuple(Var("ijklmnpq"[d % 8]) for d in range(max(1, len(shape))))
        value = self.value
        if isinstance(value, Region):
            value = Load(value.buffer, at(value, loop_vars), loc=self.loc)
        one = AtomicElement(self.kind, self.dst.buffer, at(self.dst, loop_vars), value, self.order, loc=self.loc)
        return Parallel(loop_vars, shape or (1,), (one,), loc=self.loc)

    def element_loop(self) -> Parallel | None:
        return self.as_parallel() if sized_late(self.dst) and not self.use_tma else None

    def canonical(self) -> tuple[Stmt, ...]:
        """In an array that is each thread's own the update is an ordinary one."""
        late = self.element_loop()
        if late is not None:
            return late.canonical()
        if self.dst.buffer.space not in PRIVATE:
            return (self,)
        loop = self.as_parallel()
        one = loop.body[0]
        if not isinstance(one, AtomicElement):
            return (self,)
        old = Load(one.buffer, one.indices, loc=self.loc)
        made = cast(binary(self.kind, old, one.value), one.buffer.dtype)
        return each_thread(loop.vars, loop.extents, (Store(one.buffer, one.indices, made, loc=self.loc),), self.loc)

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        if self.use_tma:
            return self._engine(facts, target)
        return Choice((Impl("atomics", "lsu"),))

    def _engine(self, facts: Facts, target: Target) -> Choice:
        """A store of the copy engine that combines."""
        reasons = []
        if not (target.has("tma") or target.has("bulk_copy")):
            reasons.append(f"TMA atomic {self.kind} requires a CUDA target with TMA support (SM90+), not {target.name}")
        if not isinstance(self.value, Region):
            reasons.append("the value is a scalar")
        if not reasons:
            copy = self._copy()
            found = [
                self._uncombined("bulk") or bulk.bulk_impl(copy, facts, target),
                self._uncombined("tma") or tma.tma_impl(copy, facts, target),
            ]
            if fitting := tuple(i for i in found if isinstance(i, Impl)):
                return Choice(fitting)
            reasons = [f"{r.name}: {r.reason}" for r in found if isinstance(r, Refusal)]
        raise TargetError(
            f"T.atomic_{self.kind} cannot use the copy engine here ({'; '.join(reasons)})",
            rule="use_tma combines a whole shared tile with a tensor by the copy engine",
            fix="leave use_tma out, or copy the value to a shared tile",
            loc=self.loc,
        )

    def _uncombined(self, engine: str) -> Refusal | None:
        """The reason why a store of this engine cannot combine elements of the tile's type, if there is one."""
        types = _COMBINED[self.kind] + (_BULK_SUMS if (engine, self.kind) == ("bulk", "add") else ())
        dtype = self.dst.buffer.dtype
        if dtype.name in types:
            return None
        supported = f"supported scalar dtypes are {', '.join(types)}"
        return Refusal(engine, f"TMA atomic {self.kind} does not support dtype {dtype}; {supported}")

    def _copy(self) -> Copy:
        return Copy(self.value, self.dst, loc=self.loc)  # type: ignore[arg-type]

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        return {} if self.use_tma else self.as_parallel().infer(impl, known, threads, free)

    def misfits(self, impl: Impl, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
        return () if self.use_tma else self.as_parallel().misfits(impl, known, threads)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        if not self.use_tma:
            return self._of_each_thread(ctx) or self.as_parallel().issue(impl, ctx)
        stores = self._copy().issue(impl, ctx)
        return tuple(rewrite(s, self._combining) for s in stores)

    def _of_each_thread(self, ctx: Context) -> tuple[Stmt, ...]:
        """A scalar that threads have different values of: each of them updates every element with its own."""
        if isinstance(self.value, Region) or ctx.uniform is None or ctx.uniform.uniform(self.value, "role"):
            return ()
        loop = self.as_parallel()
        body = loop.body
        for var, size in zip(reversed(loop.vars), reversed(loop.extents), strict=True):
            body = (For(var, ZERO, as_expr(size), ONE, body, loc=self.loc),)
        return emit_simt(body[0], ctx)

    def _combining(self, n: Node) -> Node:
        return replace(n, reduce=self.kind) if isinstance(n, (TmaStore, BulkStore)) else n

    def complete(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return self._copy().complete(impl, ctx) if self.use_tma else ()

    def run(self, env: Any) -> None:
        to = self.dst.buffer.dtype
        extents = env.extents(self.dst)
        if isinstance(self.value, Region):
            value = env.read(self.value, sink="an atomic update")
            value = value.reshape(value.shape[: env.lead] + extents)
            value = env.convert(value, self.value.buffer.dtype, to)
        else:
            env.require(self.value, "an atomic update", self.loc)
            value = env.convert(env.scalar(self.value), self.value.dtype, to)
            value = value.reshape(value.shape + (1,) * len(extents)) if value.ndim else value
        env.update(self.kind, self.dst, value)

    def text(self, show: Any) -> str:
        options = "" if self.order == "relaxed" else f", memory_order={show(self.order)}"
        options += ", use_tma=True" if self.use_tma else ""
        return f"T.atomic_{self.kind}({show.like(self.dst, self.value)}, {show.like(self.value, self.dst)}{options})"
