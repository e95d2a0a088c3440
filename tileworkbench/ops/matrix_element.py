"""Matrix instructions that a kernel writes itself, on arrays of its threads: a warp loads 8 × 8 matrices from shared
memory, and multiplies what its lanes hold."""

from __future__ import annotations

from typing import Any

from ..errors import LanguageError, TargetError
from ..ir.expr import Expr, Load
from ..ir.instr import LdMatrix, Mma, MmaSparse, Reg
from ..ir.node import node
from ..ir.op import Access, ElementStmt
from ..ir.stmt import Region, Stmt
from ..ir.uniform import rank
from ..layout.atoms import Atom
from ..layout.ldmatrix import ROW_BYTES, keeps_rows
from .context import run
from .private import SPACES, settled
from .values import Scope, coordinates, register_index

REGISTER_BITS = 32  # of a matrix instruction's operand


@node
class MatrixLoad(ElementStmt):
    """`count` (1, 2 or 4) matrices of eight rows of 16 bytes: lane 8 j + i gives the first element of row i of matrix j
    as `src`, and gets 32 bits of each matrix in its array from `dst` on (see `layout.ldmatrix`)."""

    dst: Region
    src: Region
    count: int
    transposed: bool = False

    def element_access(self) -> tuple[Access, ...]:
        """The whole tile may be read: the rows are the lanes' choice."""
        return Access(self.src.buffer, "r"), Access(self.dst.buffer, "w")

    def text(self, show: Any) -> str:
        """The instruction as the user wrote it."""
        return f"T.ptx_ldmatrix({self.transposed}, {self.count}, {_place(self.src, show)}, {_place(self.dst, show)})"


@node
class MatrixProduct(ElementStmt):
    """`acc += a · b` by one warp, on the registers of the instruction `atom`, which start at each region. A sparse one
    has 32 bits of `meta` in each lane; `selector` says in which lanes of a quad they count."""

    atom: Atom
    acc: Region
    a: Region
    b: Region
    meta: Region | None = None
    selector: int = 0

    @property
    def called(self) -> str:
        """The instruction as the user called it."""
        return "T.ptx_mma" if self.meta is None else "T.ptx_mma_sp"

    def element_access(self) -> tuple[Access, ...]:
        """The operands are read, the accumulator too."""
        read = (self.a, self.b, *(() if self.meta is None else (self.meta,)))
        return *(Access(r.buffer, "r") for r in read), Access(self.acc.buffer, "rw")

    def text(self, show: Any) -> str:
        """The instruction with its operands."""
        parts = [_place(r, show) for r in (self.acc, self.a, self.b)]
        if self.meta is not None:
            parts += [_place(self.meta, show), str(self.selector)]
        return f"T.mma({', '.join(parts)})  # {self.atom.instruction}"


def _place(region: Region, show: Any) -> str:
    return str(show(Load(region.buffer, region.starts)))


def emit_load(s: MatrixLoad, scope: Scope) -> tuple[Stmt, ...]:
    """The instruction; what the tile's layout or the target cannot do is said."""
    ctx, buffer = scope.ctx, s.src.buffer
    _whole_warp(s, scope, "T.ptx_ldmatrix")
    if not ctx.target.has("ldmatrix"):
        raise TargetError("T.ptx_ldmatrix", rule=f"{ctx.target.name} has no ldmatrix", fix="T.copy", loc=s.loc)
    if not keeps_rows(ctx.layouts[buffer], buffer.rank - 1, buffer.dtype.bytes):
        raise LanguageError(
            f"T.ptx_ldmatrix from `{buffer.name}`, whose layout breaks rows of {ROW_BYTES} bytes",
            rule="each lane reads 16 bytes of a row in one piece",
            fix="annotate a swizzled layout (make_swizzled_layout), or none",
            loc=s.loc,
        )
    place = ctx.address(buffer, coordinates(s.src.starts, scope))
    return (LdMatrix(_registers(s.dst, scope), place, s.count, s.transposed, loc=s.loc),)


def emit_product(s: MatrixProduct, scope: Scope) -> tuple[Stmt, ...]:
    """The instruction, where the target has it."""
    target = scope.ctx.target
    _whole_warp(s, scope, s.called)
    if not s.atom.supports(target.name) and not s.atom.supports(target.build_arch):
        raise TargetError(f"{s.atom.instruction}", rule=f"{target.name} does not have it", fix="T.gemm", loc=s.loc)
    acc, a, b = (_registers(r, scope) for r in (s.acc, s.a, s.b))
    if s.meta is None:
        return (Mma(s.atom.instruction, acc, a, b, acc, loc=s.loc),)
    return (MmaSparse(s.atom.instruction, acc, a, b, acc, _registers(s.meta, scope), s.selector, loc=s.loc),)


def _whole_warp(s: Stmt, scope: Scope, what: str) -> None:
    if scope.loop is not None or scope.lane is not None:
        raise LanguageError(
            f"{what} inside T.Parallel or T.vectorized", rule="a whole warp executes it together",
            fix="write it in thread-level code", loc=s.loc,
        )  # fmt: skip
    if rank(scope.ctx.flow) < rank("warp"):
        raise LanguageError(
            f"{what} where only some threads of a warp come", rule="a whole warp executes it together",
            fix="move it out of the branch on the thread index", loc=s.loc,
        )  # fmt: skip


def _registers(region: Region, scope: Scope) -> Reg:
    """The run of a thread's array that a region names."""
    buffer = region.buffer
    if buffer.space not in SPACES:
        raise LanguageError(
            f"a matrix instruction on `{buffer.name}`, which is {buffer.space} memory",
            rule="its registers are an array of each thread",
            fix="T.alloc_local",
            loc=region.loc,
        )
    index: Expr = register_index(buffer, region.starts, scope)
    if not settled(index, scope.ctx.flat):
        raise LanguageError(
            f"a matrix instruction on `{buffer.name}` at a place known only at run time",
            rule="private arrays live in registers, which are numbered while compiling",
            fix="unroll the loop around it (T.unroll)",
            loc=region.loc,
        )
    whole = max(1, REGISTER_BITS // buffer.dtype.bits)
    if not scope.ctx.facts.divides(whole, index):
        raise LanguageError(
            f"a matrix instruction on `{buffer.name}` from an element that may be inside of a register",
            rule=f"a register holds {whole} elements of {buffer.dtype}: it starts at a multiple of {whole}",
            fix=f"begin at a multiple of {whole}",
            loc=region.loc,
        )
    held, count = scope.ctx.reg(buffer), int(region.extents[-1])
    (low, high), size = scope.ctx.facts.range(index), held.static_size() or 1
    if low < 0 or high + count > size:
        raise LanguageError(
            f"a matrix instruction on elements {low} to {high + count - 1} of `{buffer.name}`",
            rule=f"a thread's array holds what the instruction takes: `{buffer.name}` has {size}",
            fix="allocate more elements, or begin elsewhere",
            loc=region.loc,
        )
    return run(held, index, count)
