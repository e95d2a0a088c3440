"""Scalar expression nodes and the buffers they read. How they are built and folded stands in ir/fold.py."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, Union

from .dtype import BOOL, DTYPES, FLOAT32, INT32, DType
from .node import Node, leaf, node
from .operators import Operators

Value = Union["Expr", int, float, bool]


class Expr(Operators, Node):
    """A scalar value. `dtype` is its type. Python operators on expressions build expressions."""

    __slots__ = ()
    dtype: DType

    def astype(self, to: Any) -> Expr:
        """This value converted to another type."""
        return self._cast(self, DTYPES[str(to)])


@node
class Const(Expr):
    """A literal; floats hold the exactly rounded value of their dtype."""

    value: int | float | bool
    dtype: DType = INT32


@node
class Var(Expr):
    """A named scalar: a loop index, a block index, a symbol of a shape, a let. Compared by identity."""

    name: str
    dtype: DType = INT32


@node
class Special(Expr):
    """A thread-level index: thread (in the block), role_thread, lane, warp, cluster_rank, or grid/block extents."""

    name: str
    dtype: DType = INT32


@node
class Unary(Expr):
    """op: neg, abs, not (bitwise), lnot (logical)."""

    op: str
    a: Expr
    dtype: DType = INT32


@node
class Binary(Expr):
    """op: add sub mul div floordiv floormod truncdiv truncmod min max pow and or xor shl shr land lor.

    floordiv and floormod round towards minus infinity as Python does; land and lor evaluate b only if needed."""

    op: str
    a: Expr
    b: Expr
    dtype: DType = INT32


@node
class Compare(Expr):
    """op: eq ne lt le gt ge."""

    op: str
    a: Expr
    b: Expr
    dtype: DType = BOOL


@node
class Select(Expr):
    """`a` where `cond`, else `b`; only the chosen side is evaluated (loads of the other side do not happen)."""

    cond: Expr
    a: Expr
    b: Expr
    dtype: DType = FLOAT32


@node
class Cast(Expr):
    """Value conversion, nearest-even; float to int truncates; `saturate` clamps to the target's range (fp8)."""

    a: Expr
    dtype: DType = FLOAT32
    saturate: bool = False


@node
class Bitcast(Expr):
    """The bits of `a` read as another type of the same width."""

    a: Expr
    dtype: DType = INT32


@node
class Call(Expr):
    """A math or intrinsic function by name (one table in ir/mathfn.py gives types and meaning)."""

    fn: str
    args: tuple[Expr, ...]
    dtype: DType = FLOAT32


@leaf
@node
class Buffer(Node):
    """A named block of memory. `space`: global, shared, fragment (a tile over threads), local (private array), var
    (private scalar), barrier, reg (registers of one thread). `shape` entries are ints or expressions of symbols;
    `strides` in elements, None for row-major. Compared by identity."""

    name: str
    shape: tuple[Any, ...]
    dtype: DType
    space: str = "global"
    strides: tuple[Any, ...] | None = None
    # Bits that differ between kinds of buffers: e.g. ("count", n) of a barrier array, ("view_of", buffer).
    attrs: tuple[tuple[str, Any], ...] = field(default=())

    def attr(self, key: str, default: Any = None) -> Any:
        """The attribute of this name."""
        return dict(self.attrs).get(key, default)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def data(self) -> Buffer:
        """What statements on addresses take: the buffer itself."""
        return self

    def scope(self) -> str:
        """The space by its name in TileLang: shared.dyn, local.fragment, local, global."""
        named = {"shared": "shared.dyn", "fragment": "local.fragment", "barrier": "shared.barrier"}
        return named.get(self.space, self.space)

    def static_size(self) -> int | None:
        """Elements, or None when an extent is symbolic."""
        return math.prod(self.shape) if all(isinstance(s, int) for s in self.shape) else None


@node
class Load(Expr):
    """One element of a buffer. At thread level only register buffers are read by expressions."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.buffer.dtype
