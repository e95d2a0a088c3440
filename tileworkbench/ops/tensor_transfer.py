"""Boxes of described tensors that a kernel asks the copy engine for by the instruction itself."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ..errors import TargetError
from ..ir.arith import Facts
from ..ir.expr import Const, Expr, as_expr, compare
from ..ir.instr import Addr, Bar, TmaLoad
from ..ir.kernel import TmaMap
from ..ir.node import node
from ..ir.op import Choice, Impl
from ..ir.region import root
from ..ir.stmt import ZERO, Stmt
from ..layout import SharedLayout
from ..target import Target
from .barrier import OnBarrier
from .context import Context, row_major_strides
from .copies.pairs import stays_inside
from .copies.tma import ALIGNMENT, SHARED_ALIGNMENT
from .transfers import Transfer, plain

_BEGINS = f"the engine's first coordinate is a multiple of {ALIGNMENT} B"
PATTERN = 8  # rows after which the swizzle of shared addresses repeats


@node
class TensorTransfer(Transfer):
    """The box `src` of a tensor, the part outside it filled, goes to the storage of a tile from its element `at` on:
    row by row, so that `dst` is a run of the tile seen as one row, or swizzled by `swizzle` bytes, so that `dst` is the
    rows of a panel. `l2`: bytes that the cache fetches at once; `policy`: evict_first, evict_last or nothing."""

    name: ClassVar[str] = "tma_load"
    feature: ClassVar[str] = "tma"
    at: Expr
    swizzle: int = 0
    fill: str = "zero"
    l2: int = 128
    policy: str = ""

    @property
    def bytes(self) -> int:
        """Bytes that a box has, filled ones too."""
        return math.prod(map(int, self.src.extents)) * self.dst.buffer.dtype.bytes

    @property
    def unit(self) -> int:
        """Elements of which a box's place in the storage is a multiple."""
        return max(SHARED_ALIGNMENT, PATTERN * self.swizzle) // self.dst.buffer.dtype.bytes

    @property
    def layout(self) -> SharedLayout:
        if not self.swizzle:
            return plain(root(self.dst.buffer))
        tile = self.dst.buffer
        return SharedLayout.swizzled(tuple(map(int, tile.shape)), tile.dtype.bytes, self.swizzle)

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        OnBarrier.impls(self, facts, target, warps)
        tensor, tile = self.src.buffer, self.dst.buffer
        self._described(facts)
        self._begun(facts)
        self._placed(facts)
        zeros = None if self.fill == "nan" or stays_inside(self.src, facts) else root(tensor)
        made = Impl(
            self.name, "tma", "thread", "manual", layouts={root(tile): (self.layout,)}, proxies={tile: "async"},
            bytes=self.bytes, zeros=zeros,
        )  # fmt: skip
        return Choice((made,))

    def _begun(self, facts: Facts) -> None:
        """Refuses a box that surely begins inside of 16 bytes of a row; where only the run tells, it is the kernel's
        affair."""
        first, item = facts.simplify(as_expr(self.src.starts[-1])), self.src.buffer.dtype.bytes
        if isinstance(first, Const) and first.value * item % ALIGNMENT:
            raise self.mistake(
                f"the box begins at byte {first.value * item} of a row of `{root(self.src.buffer).name}`", _BEGINS,
                "begin at one, or use T.copy",
            )  # fmt: skip

    def _placed(self, facts: Facts) -> None:
        """Refuses a place that the engine does not write to. Swizzled rows would land elsewhere if it were one, so
        theirs must surely be right; that of others is the kernel's affair where only the run tells."""
        name, item, place = root(self.dst.buffer).name, self.dst.buffer.dtype.bytes, facts.simplify(self.at)
        byte = place.value * item if isinstance(place, Const) else None
        if (byte is not None or self.swizzle) and not facts.divides(self.unit, place):
            raise self.mistake(
                f"its place in `{name}` is {f'byte {byte}' if byte is not None else 'known only at run time'}",
                f"a box is written from a multiple of {self.unit * item} B on", "begin at one",
            )  # fmt: skip
        fits = facts.prove(facts.simplify(self._ends()))
        if fits is False or (self.swizzle and fits is None):
            raise self.mistake(
                f"it leaves `{name}`" if not self.swizzle else f"it may leave the rows of `{name}` that it begins in",
                "all of a box is written, row after row", "take a box that fits, or begin at another place",
            )  # fmt: skip

    def _described(self, facts: Facts) -> None:
        tensor, item = self.src.buffer, self.src.buffer.dtype.bytes
        strides = tensor.strides or row_major_strides(tensor.shape)
        reason = ""
        if tensor.dtype is not root(tensor).dtype:
            reason = f"sees {root(tensor).dtype} elements as {tensor.dtype}"
        elif not facts.starts_at(ALIGNMENT, root(tensor)):
            reason = f"may start elsewhere than at a multiple of {ALIGNMENT} B"
        elif not all(facts.divides(max(1, ALIGNMENT // item), as_expr(s)) for s in strides[:-1]):
            reason = f"has rows that may start elsewhere than at multiples of {ALIGNMENT} B"
        if reason:
            raise TargetError(
                f"T.{self.name}: `{root(tensor).name}` {reason}", rule="a descriptor describes a tensor as it lies",
                fix="pad the tensor's rows, or use T.copy", loc=self.loc,
            )  # fmt: skip

    def _ends(self) -> Expr:
        """That the box lies in the tile, or in one slice of its rows."""
        d = len(self.dst.starts) - (2 if self.swizzle else 1)
        return compare("le", as_expr(self.dst.starts[d]) + self.dst.extents[d], self.dst.buffer.shape[d])

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        self.apart(ctx)
        tile = self.dst.buffer
        first = ctx.address(tile, (ZERO,) * tile.rank)
        to = Addr(first.buffer, ctx.facts.simplify(first.offset + self.at))
        coords = tuple(ctx.facts.simplify(c) for c in reversed(self.src.starts))
        bar = Bar(self.bar.buffer, ctx.facts.simplify(self.bar.starts[0]))
        name = self._map(ctx).name
        return (TmaLoad(to, name, coords, bar, self.bytes, hint=self.policy, asked=True, loc=self.loc),)

    def _map(self, ctx: Context) -> TmaMap:
        tensor, box = self.src.buffer, tuple(int(n) for n in reversed(self.src.extents))
        key = (tensor, box, self.swizzle, self.fill, self.l2)
        made = ctx.maps.get(key)
        if made is None:
            strides = tensor.strides or row_major_strides(tensor.shape)
            pitches = tuple(s * tensor.dtype.bytes for s in reversed(strides[:-1]))
            made = ctx.maps[key] = TmaMap(
                ctx.name(f"{root(tensor).name}_map"), root(tensor), tuple(reversed(tensor.shape)), pitches, box,
                self.swizzle, self.fill, self.l2,
            )  # fmt: skip
        return made

    def inside(self, env: Any) -> None:
        tile, name = self.dst.buffer, root(self.dst.buffer).name
        first = env.scalar(as_expr(self.src.starts[-1])) * tile.dtype.bytes
        self.fault(
            env, np.asarray(first) % ALIGNMENT != 0,
            f"the box begins inside of {ALIGNMENT} B of a row of `{root(self.src.buffer).name}`", _BEGINS,
            "begin at one, or use T.copy",
        )  # fmt: skip
        self.fault(
            env, env.scalar(self.at) % self.unit != 0, f"its place in `{name}` is between two that a box starts at",
            f"a box is written from a multiple of {self.unit * tile.dtype.bytes} B on", "begin at one",
        )  # fmt: skip
        self.fault(
            env, ~np.asarray(env.scalar(self._ends()), dtype=bool), f"it leaves `{name}`",
            "all of a box is written, row after row", "take a box that fits",
        )  # fmt: skip

    def filled(self, env: Any, value: Any) -> Any:
        if self.fill == "zero":
            return value
        extents = self.src.extents
        held = np.ones((1,) * env.lead + tuple(map(int, extents)), dtype=bool)
        for d, (start, extent) in enumerate(zip(self.src.starts, extents, strict=True)):
            first = np.asarray(env.scalar(start))
            first = first.reshape(first.shape + (1,) * len(extents)) if first.ndim else first
            at = first + np.arange(int(extent)).reshape((-1,) + (1,) * (len(extents) - d - 1))
            held = held & (at >= 0) & (at < env.scalar(as_expr(self.src.buffer.shape[d])))
        return np.where(held, value, value.dtype.type(np.nan))
