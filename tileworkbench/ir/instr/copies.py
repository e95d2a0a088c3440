"""Asynchronous copies and their groups."""

from __future__ import annotations

from typing import Any, ClassVar

from ..expr import Expr
from ..node import node
from .operands import Addr, Bar, Instr, Reg


@node
class CopyAsync(Instr):
    """cp.async of `bytes` (4, 8 or 16) from global to shared; bytes past `valid` (an expression, None = all) become
    0."""

    needs: ClassVar[str | None] = "cp_async"
    engine: ClassVar[str] = "lsu"
    dst: Addr
    src: Addr
    bytes: int
    valid: Expr | None = None


@node
class TmaLoad(Instr):
    """One box of a tensor map into shared memory; `coords` innermost first, in elements. Elements outside the tensor
    become the map's fill. Adds `bytes` to the barrier's pending count when done. `asked`: the kernel itself asks for it
    and counts the bytes, and every thread that comes asks for one."""

    needs: ClassVar[str | None] = "tma"
    engine: ClassVar[str] = "tma"
    proxy: ClassVar[str] = "async"
    dst: Addr
    map: str
    coords: tuple[Expr, ...]
    bar: Bar
    bytes: int
    multicast: Expr | None = None
    hint: str = ""
    asked: bool = False


@node
class TmaStore(Instr):
    """One box from shared memory to a tensor map; elements outside the tensor are dropped. reduce: "", add, min,
    max."""

    needs: ClassVar[str | None] = "tma"
    engine: ClassVar[str] = "tma"
    proxy: ClassVar[str] = "async"
    map: str
    coords: tuple[Expr, ...]
    src: Addr
    reduce: str = ""
    hint: str = ""


@node
class BulkLoad(Instr):
    """`bytes` consecutive bytes (a multiple of 16) from global to shared memory. `asked`: as a TmaLoad's."""

    needs: ClassVar[str | None] = "bulk_copy"
    engine: ClassVar[str] = "tma"
    proxy: ClassVar[str] = "async"
    dst: Addr
    src: Addr
    bytes: Any  # int or Expr
    bar: Bar
    asked: bool = False


@node
class BulkStore(Instr):
    """`bytes` consecutive bytes from shared to global memory; reduce: "", add, min, max on the buffer's dtype."""

    needs: ClassVar[str | None] = "bulk_copy"
    engine: ClassVar[str] = "tma"
    proxy: ClassVar[str] = "async"
    dst: Addr
    src: Addr
    bytes: Any
    reduce: str = ""


@node
class LdsDirect(Instr):
    """AMD: each lane's `bytes` from global memory to consecutive places from a wave-uniform shared base."""

    scope: ClassVar[str] = "warp"
    needs: ClassVar[str | None] = "lds_direct"
    engine: ClassVar[str] = "lsu"
    dst: Addr
    src: Addr
    bytes: int


@node
class CommitGroup(Instr):
    """Closes a group of asynchronous work. engine_of: copy (cp.async), bulk (TMA stores), wgmma."""

    synchronises: ClassVar[bool] = True
    engine_of: str


@node
class WaitGroup(Instr):
    """Waits until at most `pending` groups are open; reads_only: only until sources have been read (bulk). `regs` are
    the registers that the awaited wgmmas wrote or read; none named: every accumulator of the role, if pending is 0."""

    synchronises: ClassVar[bool] = True
    engine_of: str
    pending: int
    reads_only: bool = False
    regs: tuple[Reg, ...] = ()
