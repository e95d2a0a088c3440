"""What a tile operation may ask of the machine: read a region, write a region, a scalar, a product, a conversion.

Values have the machine's axes first (`lead` of them; extent 1 where nothing varies), then one axis a dimension of the
region. They are in the container of the region's dtype (`rounding.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SimulationError
from ...ir.dtype import INT32, DType
from ...ir.expr import Buffer, Expr
from ...ir.stmt import Region
from . import clusters, rounding, transfers
from .access import load
from .affine import Affine, axis_values
from .arithmetic import as_array
from .atomic import update
from .rings import Barrier
from .state import State, both
from .storage import own
from .taint import never_written, refuse, undefined_of
from .write import release_private, replace, store

if TYPE_CHECKING:
    from ...errors import Loc
    from .program import Program


class Env:
    """The services of one agent's state."""

    def __init__(self, st: State, program: Program) -> None:
        self.st, self.program = st, program

    @property
    def lead(self) -> int:
        """How many machine axes a value has before the region's own."""
        return self.st.base

    def extents(self, region: Region) -> tuple[int, ...]:
        """The region's extents as ints."""
        return self.program.region(region).sizes(self.st)

    def frozen(self, buffer: Buffer) -> bool:
        """Whether nothing writes to the buffer while the kernel runs, so that what `read` gave may be kept."""
        return self.st.slot(buffer).frozen

    def read(self, region: Region, sink: str = "") -> np.ndarray:
        """The region's values; 0 past the edge of a global tensor. `sink` names a use for which never-written elements
        are refused."""
        st, slot, plan = self.st, self.st.slot(region.buffer), self.program.region(region)
        extents = plan.sizes(st)
        if sink and slot.undefined is not None:
            mark = self.undefined(region)
            if mark is not None and np.any(np.logical_and(mark, self._mask(extents))):
                raise never_written(region.buffer.name, sink, region.loc)
        if plan.covers(st, slot, extents):
            return rounding.widen(slot.array, region.buffer.dtype) if slot.narrow else slot.array
        indices = plan.indices(st, extents)
        with st.opened(extents):
            return _full(st, load(st, slot, indices, region.loc), extents)

    def undefined(self, region: Region) -> Any:
        """None, or where the region's values were never written."""
        st, slot, plan = self.st, self.st.slot(region.buffer), self.program.region(region)
        if slot.undefined is None:
            return None
        extents = plan.sizes(st)
        indices = plan.indices(st, extents)
        with st.opened(extents):
            mark = _full(st, load(st, slot, indices, region.loc, undefined_of(slot)), extents)
        return mark if mark.any() else None

    def write(
        self,
        region: Region,
        value: Any,
        dtype: DType,
        keep: bool = False,
        undefined: Any = None,
        origin: str = "the source",
    ) -> None:
        """Stores `value`, of `dtype`, in the region for the active blocks, converted as T.copy does it: nearest-even,
        saturating for fp8. What lies past the edge of a global tensor is dropped. `keep` promises that nobody changes
        `value` later. `undefined` marks elements that were never written in `origin`."""
        st = self.st
        if st.mask is False or self.program.region(region).empty(st):
            return
        if st.deferred is None:
            self._land(region, value, dtype, keep, undefined, origin, None)
            return
        plan = self.program.region(region)
        mask = st.mask
        indices = plan.indices(st, plan.sizes(st))
        held = value if keep else np.array(value)

        def land() -> None:
            saved, st.mask = st.mask, mask
            self._land(region, held, dtype, True, undefined, origin, indices)
            st.mask = saved

        st.deferred.append(land)

    def _land(
        self, region: Region, value: Any, dtype: DType, keep: bool, undefined: Any, origin: str, indices: Any
    ) -> None:
        """The store itself; `indices` are those of the issue when it happens later."""
        st, to = self.st, region.buffer.dtype
        slot, plan = st.slot(region.buffer, write=True), self.program.region(region)
        extents = plan.sizes(st)
        if slot.lead == 0:
            if undefined is not None and np.any(np.logical_and(undefined, self._mask(extents))):
                raise never_written(origin, f"a store to global memory, `{region.buffer.name}`", region.loc)
            value = rounding.native(value, dtype, to) if slot.narrow else rounding.convert(value, dtype, to)
        else:
            keep = keep or rounding.changes(dtype, to)
            value = rounding.convert(value, dtype, to, saturate=True)
            if st.mask is True and plan.covers(st, slot, extents):
                replace(st, slot, value, keep, undefined)
                return
        if indices is None:
            indices = plan.indices(st, extents)
        with st.opened(extents):
            store(st, slot, indices, value, region.loc, undefined)

    def _mask(self, extents: tuple[int, ...]) -> Any:
        mask = self.st.mask
        return mask.reshape(mask.shape + (1,) * len(extents)) if isinstance(mask, np.ndarray) else mask

    def scalar(self, e: Expr) -> Any:
        """A scalar's value: a NumPy scalar, or an array over the machine's axes."""
        return as_array(self.program.expression(e, 0)(self.st), e.dtype)

    def require(self, e: Expr, what: str, loc: Loc | None) -> None:
        """Refuses a scalar that was never written."""
        refuse(self.st, self.program.taint(e, 0), e, what, loc)

    def happens(self, where: np.ndarray) -> bool:
        """Whether a fault found at these points (machine axes first) is one of a block that runs."""
        return bool(np.any(np.logical_and(where, self._mask(where.shape[self.lead :]))))

    def convert(self, value: Any, source: DType, to: DType) -> Any:
        """Elementwise conversion as T.copy does it: nearest-even, saturating for fp8."""
        return rounding.convert(value, source, to, saturate=True)

    def round(self, value: Any, to: DType) -> Any:
        """float32 results rounded to `to`."""
        fn = rounding.rounder(to)
        return value if fn is None else fn(value)

    def container(self, dtype: DType) -> np.dtype:
        """The NumPy dtype of values of `dtype`."""
        return rounding.container(dtype)

    def operand(self, value: np.ndarray, dtype: DType) -> np.ndarray:
        """A gemm operand ready for `product`: tf32 rounded to its mantissa, integers as float64."""
        if dtype.name == "tfloat32":
            return np.asarray(rounding.round_tf32(value))
        return value if dtype.is_float else value.astype(np.float64)

    def update(self, kind: str, region: Region, value: Any) -> None:
        """Combines `value` into the region's elements atomically."""
        st = self.st
        if st.mask is False:
            return
        slot, extents = st.slot(region.buffer, write=True), self.extents(region)
        if slot.lead:
            own(slot, (*st.sizes[:-1], 1))
        indices = self.program.region(region).indices(st, extents)
        with st.opened(extents):
            every = (*st.sizes[: st.base - 1], 1, *st.sizes[st.base :])
            update(st, slot, kind, indices, value, region.loc, every)

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a · b over the last two axes; valid until the next product."""
        return self.program.products.product(a, b)

    def add_product(self, region: Region, a: np.ndarray, b: np.ndarray) -> None:
        """Adds a · b to the region's elements, rounded to their dtype."""
        st, to = self.st, region.buffer.dtype
        old = self.read(region, sink="a gemm's accumulator")
        slot = st.slot(region.buffer, write=True)
        private = old is slot.array and slot.owned and st.mask is True and rounding.rounder(to) is None
        matrix = (*old.shape[: self.lead], *old.shape[-2:])
        if private and self.program.products.add_product(old.reshape(matrix), a, b):
            return
        value = self.product(a, b)
        if to.is_int:
            value = value.astype(np.int64).astype(to.numpy)
        value = value.reshape(value.shape[: self.lead] + old.shape[self.lead :])
        if private and value.dtype == old.dtype and value.shape == old.shape:
            np.add(old, value, out=old)
        else:
            self.write(region, self.round(np.add(old, value), to), to, keep=True)

    def barrier(self, region: Region) -> Barrier:
        """The state of one mbarrier."""
        (start,) = region.starts
        index = self.st.number(start)
        return self.st.ring.shared.barrier(region.buffer, index)

    def arrive(self, region: Region, cta: Expr | None = None) -> None:
        """Every active thread of the agent arrives on a barrier, that of the cluster's block `cta` if given."""
        st = self.st
        taking_part = clusters.active_threads(st)
        if cta is None:
            self.barrier(region).arrive(int(taking_part.sum()))
            st.ring.shared.ticks += 1
            return
        (start,) = region.starts
        index = st.number(start)
        for shared, count in clusters.targets(st, self.scalar(cta), taking_part, region):
            shared.barrier(region.buffer, index).arrive(count)
            st.ring.shared.ticks += 1

    @contextmanager
    def transfers(self, op: Any) -> Iterator[None]:
        """For the length of the block the active threads ask the copy engine for `op`, each for its own."""
        with transfers.asked(self.st, op, self.scalar):
            yield

    def give(self, op: Any, value: Any, undefined: Any) -> None:
        """Stores `value` in `op.dst` of the cluster's block `op.block`, and arrives once on `op.barrier` there."""
        st, region, to = self.st, op.dst, op.dst.buffer.dtype
        if st.mask is False:
            return
        ranks = np.unique(self.scalar(op.block))
        if ranks.size != 1:
            raise SimulationError(
                "T.copy_cluster: threads mean different blocks", rule="a tile goes to one block",
                fix="derive dst_block from block indices", loc=op.loc,
            )  # fmt: skip
        there = clusters.member(st, int(ranks[0]), f"a copy to `{region.buffer.name}`", op.loc)
        home = there.home if there.home is not None else st
        value = rounding.convert(value, op.src.buffer.dtype, to, saturate=True)
        plan = self.program.region(region)
        extents = plan.sizes(st)
        indices = plan.indices(st, extents)
        with st.opened(extents):
            store(st, home.slot(region.buffer, write=True), indices, value, region.loc, undefined)
        if op.barrier is not None:
            there.barrier(op.barrier.buffer, st.number(op.barrier.starts[0])).arrive(1)
        st.ring.shared.ticks += 1

    def parallel(self, op: Any) -> None:
        """Runs the body of a T.Parallel for all iterations at once."""
        st = self.st
        limits = [self._limit(e) for e in op.extents]
        extents = tuple(max(0, int(np.max(n))) for n in limits)
        if 0 in extents:
            return
        body = self.program.parallel_body(op)
        spread, st.spread = st.spread, []
        with st.opened(extents):
            rank = st.rank
            for at, (var, size) in enumerate(zip(op.vars, extents, strict=True)):
                index = st.vars[var] = axis_values(rank - len(extents) + at, size, rank)
                limit = limits[at]
                if isinstance(limit, np.ndarray):  # it differs between blocks
                    st.mask = both(st.mask, as_array(index, INT32) < limit.reshape(limit.shape + (1,) * len(extents)))
            for _ in body(st):
                pass
        spread, st.spread = st.spread, spread
        release_private(st, spread)

    def _limit(self, extent: Any) -> Any:
        """An extent as an int, or as an array over the machine's axes."""
        value = extent if isinstance(extent, int) else as_array(self.program.expression(extent, 0)(self.st), INT32)
        return value if isinstance(value, np.ndarray) and value.size > 1 else int(np.asarray(value).reshape(-1)[0])

    def thread_index(self) -> Affine:
        """0 … threads − 1 along the thread axis."""
        return axis_values(self.st.base - 1, self.st.threads, self.st.base)

    def cluster_rank(self) -> Any:
        """The block's number in its cluster, x fastest."""
        rank: Any = 0
        pitch = 1
        for var, n in zip(self.program.block_vars, self.program.cluster, strict=False):
            at = self.st.vars[var]
            at = at.dense() if isinstance(at, Affine) else at
            rank, pitch = rank + at % n * pitch, pitch * n
        return rank if isinstance(rank, int) else rank.astype(np.int32)

    def block_name(self, place: tuple[int, ...]) -> str:
        origin = self.st.origin
        block = [o + (int(p) if p < n else 0) for o, p, n in zip(origin, place, self.st.sizes, strict=False)]
        return f"[block {', '.join(map(str, reversed(block)))}] " if block else ""


def _full(st: State, value: np.ndarray, extents: tuple[int, ...]) -> np.ndarray:
    """Region axes at their full extents (a constant index map leaves some at 1)."""
    shape = value.shape[: st.base] + extents
    return value if value.shape == shape else np.broadcast_to(value, shape)
