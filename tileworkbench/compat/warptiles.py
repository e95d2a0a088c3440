"""What TileLang's emitters of matrix instructions share: a tile of C over a block's warps, operands loaded into arrays
of the threads, products, and results stored. Fragments and ldmatrix moves are this package's; the attributes and
methods are TileLang's."""

from __future__ import annotations

from typing import Any

from ..errors import LanguageError
from ..ir.expr import Buffer, Expr, Load, Var, as_expr, cast, const
from ..ir.stmt import ONE, ZERO, For, Region, Stmt, Store
from ..language.builder import require
from ..language.launch import get_thread_binding
from ..language.matrixinstr import TYPES, operands
from ..language.regions import to_region
from ..layout.atoms import Atom
from ..layout.fragment import Fragment
from ..layout.ldmatrix import matrix_move
from ..layout.transform import permute_dims, repeat, replicate, tile
from ..ops.matrix_element import MatrixLoad, MatrixProduct
from .fragments import with_methods
from .indexmap import IndexMap

_SHORT = {name: short for short, name in TYPES.items()} | {"float8_e4m3": "e4m3"}


class WarpTiles:
    """The tile (block_row_warps · warp_row_tiles, block_col_warps · warp_col_tiles) in steps along K, by
    block_row_warps × block_col_warps warps. `depth` is what a block has of K. A is (M, K), or (K, M) with a_transposed;
    B is (K, N), or (N, K) with b_transposed. LanguageError for tiles that are not made of whole instructions."""

    WARP_SIZE = 32
    M_DIM = 16
    SPARSE_FACTOR = 1  # elements of a row of A for one that is stored

    def __init__(
        self, a_dtype: Any, b_dtype: Any, accum_dtype: Any, a_transposed: bool, b_transposed: bool,
        block_row_warps: int, block_col_warps: int, warp_row_tiles: int, warp_col_tiles: int, depth: int, reduce_k: int,
        num_elems_per_byte: int, is_m_first: bool | None, thread_var: Any, *, m_dim: int, k_dim: int,
    ) -> None:  # fmt: skip
        self.a_dtype, self.b_dtype, self.accum_dtype = a_dtype, b_dtype, accum_dtype
        self.a_transposed, self.b_transposed = a_transposed, b_transposed
        self.block_row_warps, self.block_col_warps = block_row_warps, block_col_warps
        self.warp_row_tiles, self.warp_col_tiles, self.depth = warp_row_tiles, warp_col_tiles, depth
        self.reduce_k, self.num_elems_per_byte = reduce_k, num_elems_per_byte
        self.is_m_first, self.thread_var = bool(is_m_first), thread_var
        self.M_DIM, self.k_dim = m_dim, k_dim
        self.n_dim = 16 if m_dim == 16 and warp_col_tiles % 16 == 0 else 8
        self.mma_prefix = f"m{self.M_DIM}n8k{self.k_dim}"
        self._check_tiles()
        self.micro_size_x, self.micro_size_y, self.micro_size_k = self.M_DIM, self.n_dim, self.k_dim
        self.warp_rows, self.warp_cols = warp_row_tiles // self.M_DIM, warp_col_tiles // self.n_dim
        self.threads = self.WARP_SIZE * block_row_warps * block_col_warps * reduce_k
        tf32 = str(accum_dtype) == "float32"
        self.a_dtype_abbrv, self.b_dtype_abbrv = _short(a_dtype, tf32), _short(b_dtype, tf32)
        self.accum_dtype_abbrv = _short(accum_dtype, False)
        self.atom = self._instruction()
        a, b, c = self.atom.fragments()
        halves = self.n_dim // 8
        self._a, self._b, self._c = a, tile(b, (halves, 1)), tile(c, (1, halves))
        self.local_size_a, self.local_size_b = a.registers, self._b.registers
        self.local_size_out = self._c.registers

    def _instruction(self) -> Atom:
        raise NotImplementedError

    def _check_tiles(self) -> None:
        rows, columns = self.warp_row_tiles, self.warp_col_tiles
        if rows < 1 or rows % self.M_DIM or columns < 1 or columns % self.n_dim:
            raise LanguageError(
                f"a warp's tile of {rows} × {columns}",
                rule=f"it is made of whole instructions of {self.M_DIM} × {self.n_dim}",
                fix="choose warp_row_tiles and warp_col_tiles so",
            )

    # --- where the threads are ----------------------------------------------------------------------------------------
    def get_thread_binding(self) -> Any:
        """The thread index that the warps are numbered by."""
        return get_thread_binding() if self.thread_var is None else self.thread_var

    def extract_thread_binding(self, thread_id: Any, is_m_first: bool | None = None) -> tuple[Any, Any, Any]:
        """(lane, warp along N, warp along M). Warps are numbered along M first, with is_m_first along N first."""
        first = self.is_m_first if is_m_first is None else is_m_first
        rows, columns = self.block_row_warps, self.block_col_warps
        lane, warp = thread_id % self.WARP_SIZE, thread_id // self.WARP_SIZE
        if first:
            return lane, warp % columns, warp // columns % rows
        return lane, warp // rows % columns, warp % rows

    @property
    def mma_num_inst_m(self) -> int:
        """Steps of `mma_atom` along M."""
        return self.warp_rows

    @property
    def mma_num_inst_n(self) -> int:
        """Steps of `mma_atom` along N."""
        return self.warp_cols

    # --- operands -----------------------------------------------------------------------------------------------------
    def ldmatrix_a(self, A_local_buf: Buffer, A_shared_buf: Any, ki: Any, rk: Any = 0) -> None:
        """Step `ki` of A for this warp into each thread's array."""
        lane, _, warp_m = self.extract_thread_binding(self.get_thread_binding())
        first = warp_m * self.warp_row_tiles
        k = self._k(ki, rk, self.SPARSE_FACTOR)
        self._load(A_local_buf, A_shared_buf, self._a, lane, (first, self.warp_rows), k, self.a_transposed)

    def ldmatrix_b(self, B_local_buf: Buffer, B_shared_buf: Any, ki: Any, rk: Any = 0) -> None:
        """Step `ki` of B for this warp into each thread's array."""
        lane, warp_n, _ = self.extract_thread_binding(self.get_thread_binding())
        first, along_mn = warp_n * self.warp_col_tiles, not self.b_transposed
        self._load(B_local_buf, B_shared_buf, self._b, lane, (first, self.warp_cols), self._k(ki, rk), along_mn)

    def _k(self, ki: Any, rk: Any, factor: int = 1) -> Any:
        """The first column of step `ki` where one element is stored for `factor` of K."""
        return rk * (self.depth // factor) + ki * (self.micro_size_k // factor)

    def _load(
        self, local: Buffer, shared: Any, part: Fragment, lane: Any, rows: tuple[Any, int], k: Any, k_rows: bool,
        matrices: bool = True,
    ) -> None:  # fmt: skip
        """`rows`: the first row of this warp, and how many steps it has; `k_rows`: the tile is stored (K, row);
        `matrices`: it may come by ldmatrix."""
        builder, region = require("a matrix load"), to_region(shared, "the shared operand")
        buffer, held = region.buffer, part.registers

        def place(row: Any, column: Any) -> tuple[Expr, ...]:
            first, second = (column, row) if k_rows else (row, column)
            return (*region.starts[:-2], region.starts[-2] + first, region.starts[-1] + second)

        item = buffer.dtype.bytes
        fits = matrices and item <= 4 and local.dtype.bytes == item
        move = matrix_move(part, 0 if k_rows else 1, item) if fits else None
        for i in range(rows[1]):
            start = rows[0] + i * part.shape[0]
            if move is not None:
                for n in range(move.instructions):
                    row, column = move.row_start(lane, n)
                    to = Region(local, (const(i * held + n * move.run),), (move.run,), loc=builder.here)
                    at = Region(buffer, place(start + row, k + column), (1,) * buffer.rank, loc=builder.here)
                    builder.emit(MatrixLoad(to, at, move.count, move.trans, loc=builder.here))
                continue
            j = Var(builder.unique("j"), loc=builder.here)
            row, column = part.coords(lane, j)
            value = cast(Load(buffer, place(start + row, k + column), loc=builder.here), local.dtype)
            builder.emit(_loop(j, held, (Store(local, (i * held + j,), value, loc=builder.here),), "unroll"))

    # --- products -----------------------------------------------------------------------------------------------------
    def _products(
        self, called: str, a: Buffer, b: Buffer, c: Buffer, i: Any, j: Any, meta: Region | None = None,
        selector: int = 0,
    ) -> None:  # fmt: skip
        """The part of a step's product at (i, j) of the warp's tile, added to each thread's accumulators."""
        builder = require("a matrix product")
        for buffer in (a, b, c):
            if buffer.space != "local" or buffer.rank != 1:
                raise LanguageError(
                    f"a hand-written product on `{buffer.name}`", rule="its operands are arrays of each thread",
                    fix="T.alloc_local((n,), dtype)", loc=builder.here,
                )  # fmt: skip
        held = (i * self.warp_cols + j) * self.local_size_out
        _, part_b, part_c = self.atom.fragments()
        for half in range(self.n_dim // 8):
            first_b, first_c = j * self.local_size_b + half * part_b.registers, held + half * part_c.registers
            at_a, at_b, at_c = operands(called, self.atom, (a, i * self.local_size_a), (b, first_b), (c, first_c))
            builder.emit(MatrixProduct(self.atom, at_c, at_a, at_b, meta, selector, loc=builder.here))

    def stmatrix(self, C_local_buf: Buffer, C_buf: Buffer, pid_m: Any = None, pid_n: Any = None) -> None:
        """The accumulators into a tile of (rows, columns), or of (row step, column step, row, column); with the block's
        place (pid_m, pid_n) into a tensor."""
        builder = require("a matrix store")
        lane, warp_n, warp_m = self.extract_thread_binding(self.get_thread_binding())
        if C_buf.rank not in (2, 4):
            raise LanguageError(f"stmatrix to `{C_buf.name}` of rank {C_buf.rank}", rule="it has rank 2 or 4")
        placed = pid_m is not None and pid_n is not None
        first_m = (pid_m * self.block_row_warps if placed else 0) + warp_m
        first_n = (pid_n * self.block_col_warps if placed else 0) + warp_n
        i, j, pair, one = (Var(builder.unique(n), loc=builder.here) for n in ("i", "j", "pair", "one"))
        local = pair * 2 + one
        row, column = self._c.coords(lane, local)
        step_m, step_n = first_m * self.warp_rows + i, first_n * self.warp_cols + j
        place: tuple[Any, ...] = (step_m, step_n, row, column)
        if C_buf.rank == 2:
            place = (step_m * self.micro_size_x + row, step_n * self.micro_size_y + column)
        held = (i * self.warp_cols + j) * self.local_size_out + local
        value = cast(Load(C_local_buf, (held,), loc=builder.here), C_buf.dtype)
        made: Stmt = Store(C_buf, tuple(as_expr(p) for p in place), value, loc=builder.here)
        made = _loop(one, 2, (made,), "vector")
        for var, count in ((pair, self.local_size_out // 2), (j, self.warp_cols), (i, self.warp_rows)):
            made = _loop(var, count, (made,), "unroll")
        builder.emit(made)

    # --- maps and layouts ---------------------------------------------------------------------------------------------
    def get_store_index_map(self, inverse: bool = False) -> IndexMap:
        """(lane, register) → (row, column) of one step's accumulators, or the other way round."""
        made = IndexMap(self._c.coords, self._c.owner)
        return made.inverse() if inverse else made

    def make_mma_store_layout(self, local_buf: Buffer) -> Any:
        """The fragment of C over the block's threads: steps row by row in each, warps along M first."""
        rows, columns = self.block_row_warps, self.block_col_warps
        self._require_fragment(local_buf, (rows * self.warp_row_tiles, columns * self.warp_col_tiles))
        own = tile(self._c, (self.warp_rows, self.warp_cols))
        return with_methods(repeat(repeat(own, 0, rows, "thread"), 1, columns, "thread"))

    def make_mma_load_layout(self, local_buf: Buffer, matrix: str = "A") -> Any:
        """The fragment of A or B over the block's threads, as the operand is stored: steps along K one after the other,
        replicated over the warps that share its rows."""
        rows, columns, steps = self.block_row_warps, self.block_col_warps, self.depth // self.k_dim
        is_a = matrix == "A"
        part, count = (self._a, self.warp_rows) if is_a else (self._b, self.warp_cols)
        own = repeat(repeat(part, 0, count, "reg"), 1, steps, "reg")
        if is_a:
            whole = replicate(repeat(own, 0, rows, "thread"), columns)
        else:
            whole = repeat(replicate(own, rows), 0, columns, "thread")
        whole = permute_dims(whole, (1, 0)) if self.a_transposed and is_a else whole
        whole = permute_dims(whole, (1, 0)) if not self.b_transposed and not is_a else whole
        self._require_fragment(local_buf, whole.shape)
        return with_methods(whole)

    def _require_fragment(self, buffer: Buffer, shape: tuple[int, ...]) -> None:
        if buffer.space != "fragment" or tuple(buffer.shape) != shape:
            raise LanguageError(
                f"the layout of `{buffer.name}`, a {buffer.space} buffer of {tuple(buffer.shape)}",
                rule=f"it is for a fragment of {shape}", fix=f"T.alloc_fragment({shape}, …)",
            )  # fmt: skip
        if self.is_m_first:
            raise LanguageError("a fragment over warps numbered along N first", rule="leave is_m_first out")


def _short(dtype: Any, tf32: bool) -> str:
    name = str(dtype)
    return "tf32" if name == "float32" and tf32 else _SHORT.get(name, name)


def _loop(var: Var, count: int, body: tuple[Stmt, ...], kind: str) -> For:
    return For(var, ZERO, const(count), ONE, body, kind)
