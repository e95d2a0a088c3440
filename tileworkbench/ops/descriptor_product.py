"""Warpgroup products that a kernel writes itself: operands in shared memory through matrix descriptors, accumulators in
the registers of 128 threads. The product is in flight until its group has been waited for."""

from __future__ import annotations

from typing import Any

from ..errors import LanguageError, TargetError
from ..ir.expr import Buffer, Expr, Load
from ..ir.instr import Addr, Desc, Reg, Wgmma
from ..ir.node import Node, node
from ..ir.op import Access, ElementStmt
from ..ir.stmt import Stmt
from ..ir.uniform import rank
from ..layout.atoms import Atom
from .context import run
from .matrix_element import REGISTER_BITS
from .private import settled
from .values import Scope, coordinates, expression

UNIT = 16  # bytes that descriptors count in


@node
class Described(Node):
    """An operand in the shared tile `tile`: it starts `units` × 16 bytes after the element at `starts`, and elements
    follow as the matrix descriptor says (swizzle span, leading and stride offset in bytes; major "k" or "mn")."""

    tile: Buffer
    starts: tuple[Expr, ...]
    units: Expr
    swizzle: int
    leading: int
    stride: int
    major: str


@node
class Held(Node):
    """`count` registers of each thread from `start` on: of its array of one dimension, or of its part of a fragment,
    counted as the fragment's layout does."""

    buffer: Buffer
    start: Expr
    count: int


@node
class DescriptorProduct(ElementStmt):
    """`acc (+)= a · b` by one warpgroup with the instruction `atom`; old contents of `acc` are left out where `zero`
    holds. A sparse one has 32 bits of `meta` in each lane; `selector` says in which lanes of a quad they count."""

    atom: Atom
    acc: Held
    a: Held | Described
    b: Described
    zero: Expr
    meta: Held | None = None
    selector: int = 0

    def element_access(self) -> tuple[Access, ...]:
        """The tiles are read by the asynchronous proxy, whichever part the descriptors name."""
        read = [x for x in (self.a, self.b, self.meta) if x is not None]
        return *map(_read, read), Access(self.acc.buffer, "rw")

    def text(self, show: Any) -> str:
        """The instruction with its operands."""
        operands = [_shown(x, show) for x in (self.acc, self.a, self.b)]
        if self.meta is not None:
            operands += [_shown(self.meta, show), str(self.selector)]
        return f"T.wgmma({', '.join(operands)})  # {self.atom.instruction}"


def _read(x: Held | Described) -> Access:
    if isinstance(x, Held):
        return Access(x.buffer, "r")
    return Access(x.tile, "r", proxy="async", in_flight=True)


def _shown(x: Held | Described, show: Any) -> str:
    if isinstance(x, Held):
        return f"{x.buffer.name}[{show(x.start)} : {show(x.start + x.count)}]"
    return f"&{show(Load(x.tile, x.starts))} + {UNIT} * ({show(x.units)})"


def emit(s: DescriptorProduct, scope: Scope) -> tuple[Stmt, ...]:
    """The instruction, where a whole warpgroup comes to it and the target has it."""
    target = scope.ctx.target
    if not target.has("wgmma"):
        raise TargetError(
            s.atom.instruction, rule=f"{target.name} has no wgmma", fix="T.gemm, or compile for sm_90a", loc=s.loc
        )
    if scope.loop is not None or scope.lane is not None or rank(scope.ctx.flow) < rank("warpgroup"):
        raise LanguageError(
            "T.ptx_wgmma where only some threads of a warpgroup come",
            rule="128 threads execute it together",
            fix="write it in thread-level code, outside of T.Parallel and of branches on the thread index",
            loc=s.loc,
        )
    acc = _registers(s.acc, scope)
    a = _registers(s.a, scope) if isinstance(s.a, Held) else _descriptor(s.a, scope)
    b, zero = _descriptor(s.b, scope), expression(s.zero, scope)
    meta = None if s.meta is None else _registers(s.meta, scope)
    return (Wgmma(s.atom.instruction, acc, a, b, zero, meta, s.selector, loc=s.loc),)


def _descriptor(x: Described, scope: Scope) -> Desc:
    ctx, item = scope.ctx, x.tile.dtype.bytes
    base = ctx.address(x.tile, coordinates(x.starts, scope))
    needed = 8 * x.swizzle
    if ctx.layouts[x.tile].alignment < needed:
        raise LanguageError(
            f"a descriptor with a swizzle of {x.swizzle} bytes on `{x.tile.name}`, which is "
            f"{ctx.layouts[x.tile].describe()}",
            rule=f"the pattern repeats every {needed} bytes of shared memory, where the tile must begin",
            fix="annotate a swizzled layout (T.annotate_layout with make_swizzled_layout)",
            loc=x.loc,
        )
    offset = ctx.facts.simplify(base.offset + expression(x.units, scope) * (UNIT // item))
    return Desc(Addr(base.buffer, offset), x.swizzle, x.leading, x.stride, x.major, loc=x.loc)


def _registers(x: Held, scope: Scope) -> Reg:
    index = scope.ctx.facts.simplify(expression(x.start, scope))
    if not settled(index, scope.ctx.flat):
        raise LanguageError(
            f"a warpgroup product on `{x.buffer.name}` at a place known only at run time",
            rule="registers are numbered while compiling",
            fix="unroll the loop around it (T.unroll)",
            loc=x.loc,
        )
    whole = max(1, REGISTER_BITS // x.buffer.dtype.bits)
    if not scope.ctx.facts.divides(whole, index):
        raise LanguageError(
            f"a warpgroup product on `{x.buffer.name}` from an element that may be inside of a register",
            rule=f"a register holds {whole} elements of {x.buffer.dtype}: it starts at a multiple of {whole}",
            fix=f"begin at a multiple of {whole}",
            loc=x.loc,
        )
    return run(scope.ctx.reg(x.buffer), index, x.count)
