"""The table of thread-level instructions. Each row is a class; its fields declare the operands and its class attributes
the facts: `scope` (who executes it together), `needs` (a feature of the target), `engine` and `proxy`.

Register operands are runs of one thread's registers, memory operands are (buffer, element offset): never raw addresses.
CUDA text, HIP text and NumPy meaning are found by class in codegen/ and simulate/; a test holds that none is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .expr import Buffer, Expr
from .node import Node, node
from .stmt import Stmt


@node
class Reg(Node):
    """Registers start … start + count - 1 of a reg buffer; counts elements of its dtype. `start` is constant once
    loops are unrolled."""

    buffer: Buffer
    start: Expr
    count: int = 1


@node
class Addr(Node):
    """A place in memory: `offset` elements of the buffer's dtype from its start (a shared buffer's versions included)."""

    buffer: Buffer
    offset: Expr


@node
class Bar(Node):
    """One mbarrier of a barrier buffer."""

    buffer: Buffer
    index: Expr


@node
class Desc(Node):
    """A wgmma operand in shared memory: `addr` of its first byte, swizzle span in bytes (0, 32, 64, 128), leading and
    stride byte offsets, and whether the reduction dim ("k") or the other ("mn") is contiguous."""

    addr: Addr
    swizzle: int
    leading: int
    stride: int
    major: str = "k"


@dataclass(frozen=True, eq=False, slots=True)
class Instr(Stmt):
    """Base of all rows."""

    scope: ClassVar[str] = "lane"
    needs: ClassVar[str | None] = None
    proxy: ClassVar[str] = "generic"
    engine: ClassVar[str] = "alu"
    synchronises: ClassVar[bool] = False


# --- memory -----------------------------------------------------------------------------------------------------------
@node
class LoadMem(Instr):
    """dst.count consecutive elements from memory to registers in one access. Where `pred` is false nothing is read
    and the registers become `fill` (kept when fill is None). cache: "", "cg", "cs", "nc"."""

    engine: ClassVar[str] = "lsu"
    dst: Reg
    src: Addr
    pred: Expr | None = None
    fill: Expr | None = None
    cache: str = ""


@node
class StoreMem(Instr):
    """src.count consecutive elements from registers to memory in one access, where `pred` holds."""

    engine: ClassVar[str] = "lsu"
    dst: Addr
    src: Reg
    pred: Expr | None = None
    cache: str = ""


@node
class AtomicMem(Instr):
    """op: add, max, min, and, or, xor, exch, cas on one element (or `value.count` packed ones); `old` receives the
    previous value when given. order: relaxed, acquire, release, acq_rel; scope_of: cta, gpu, sys."""

    engine: ClassVar[str] = "lsu"
    op: str
    dst: Addr
    value: Reg
    old: Reg | None = None
    pred: Expr | None = None
    order: str = "relaxed"
    scope_of: str = "gpu"


@node
class LdMatrix(Instr):
    """`num` 8×8 matrices of 16-bit elements. Each lane gives the address of one row (lanes 0–7 of the first matrix, 8–15
    of the second, …); dst.count = 2·num elements."""

    scope: ClassVar[str] = "warp"
    needs: ClassVar[str | None] = "ldmatrix"
    engine: ClassVar[str] = "lsu"
    dst: Reg
    src: Addr
    num: int
    transposed: bool = False


@node
class StMatrix(Instr):
    """The inverse of LdMatrix."""

    scope: ClassVar[str] = "warp"
    needs: ClassVar[str | None] = "stmatrix"
    engine: ClassVar[str] = "lsu"
    dst: Addr
    src: Reg
    num: int
    transposed: bool = False


# --- between lanes ----------------------------------------------------------------------------------------------------
@node
class Shuffle(Instr):
    """dst = src of another lane of the warp. kind: idx (lane), xor (mask), up, down (delta); inside groups of `width`."""

    scope: ClassVar[str] = "warp"
    dst: Reg
    src: Reg
    kind: str
    lane: Expr
    width: int = 32


@node
class Vote(Instr):
    """dst (one register) = ballot (uint32 mask), any or all of `pred` over the warp."""

    scope: ClassVar[str] = "warp"
    dst: Reg
    kind: str
    pred: Expr


# --- matrix instructions ----------------------------------------------------------------------------------------------
@node
class Mma(Instr):
    """d = a·b + c by one warp (mma.sync, mfma). `atom` names a row of the layout room's atoms."""

    scope: ClassVar[str] = "warp"
    engine: ClassVar[str] = "tensor"
    atom: str
    d: Reg
    a: Reg
    b: Reg
    c: Reg


@node
class Wgmma(Instr):
    """d (+)= a·b by one warpgroup, asynchronous until its group is waited for. Old d is ignored where `zero` holds."""

    scope: ClassVar[str] = "warpgroup"
    needs: ClassVar[str | None] = "wgmma"
    engine: ClassVar[str] = "tensor"
    proxy: ClassVar[str] = "async"
    atom: str
    d: Reg
    a: Reg | Desc
    b: Desc
    zero: Expr


@node
class WgmmaFence(Instr):
    """Orders register accesses of the warpgroup before following wgmmas; `regs` are those that they touch."""

    scope: ClassVar[str] = "warpgroup"
    needs: ClassVar[str | None] = "wgmma"
    regs: tuple[Reg, ...] = ()


# --- asynchronous copies ----------------------------------------------------------------------------------------------
@node
class CopyAsync(Instr):
    """cp.async of `bytes` (4, 8 or 16) from global to shared; bytes past `valid` (an expression, None = all) become 0."""

    needs: ClassVar[str | None] = "cp_async"
    engine: ClassVar[str] = "lsu"
    dst: Addr
    src: Addr
    bytes: int
    valid: Expr | None = None


@node
class TmaLoad(Instr):
    """One box of a tensor map into shared memory; `coords` innermost first, in elements. Elements outside the tensor
    become the map's fill. Adds `bytes` to the barrier's pending count when done."""

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


@node
class TmaStore(Instr):
    """One box from shared memory to a tensor map; elements outside the tensor are dropped. reduce: "", add, min, max."""

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
    """`bytes` consecutive bytes (a multiple of 16) from global to shared memory."""

    needs: ClassVar[str | None] = "bulk_copy"
    engine: ClassVar[str] = "tma"
    proxy: ClassVar[str] = "async"
    dst: Addr
    src: Addr
    bytes: Any  # int or Expr
    bar: Bar


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


# --- barriers and fences ----------------------------------------------------------------------------------------------
@node
class BarInit(Instr):
    """One thread makes an mbarrier expect `count` arrivals a phase."""

    needs: ClassVar[str | None] = "mbarrier"
    synchronises: ClassVar[bool] = True
    bar: Bar
    count: int


@node
class BarArrive(Instr):
    """One arrival; with `bytes` it also adds them to what the phase must receive (arrive.expect_tx)."""

    needs: ClassVar[str | None] = "mbarrier"
    synchronises: ClassVar[bool] = True
    bar: Bar
    bytes: Any = None  # int, Expr or None
    remote: Expr | None = None
    reason: str = ""


@node
class BarWait(Instr):
    """Waits until the phase with this parity has completed. `count` is the absolute phase number, known to the thread
    machine only: a slip of two phases has the right parity and the wrong count."""

    needs: ClassVar[str | None] = "mbarrier"
    synchronises: ClassVar[bool] = True
    bar: Bar
    parity: Expr
    count: Expr | None = None
    reason: str = ""


@node
class CopyAsyncArrive(Instr):
    """The barrier receives an arrival when this thread's earlier cp.asyncs are done."""

    needs: ClassVar[str | None] = "mbarrier"
    synchronises: ClassVar[bool] = True
    bar: Bar
    noinc: bool = True


@node
class Sync(Instr):
    """A rendezvous. who: warp, role, block, cluster, grid. mode: both, arrive, wait. `id` and `threads` are set once
    barrier ids are assigned; `reason` names the hazard it serves."""

    scope: ClassVar[str] = "role"
    synchronises: ClassVar[bool] = True
    who: str
    mode: str = "both"
    id: int | None = None
    threads: int | None = None
    reason: str = ""


@node
class Fence(Instr):
    """kind: proxy_async (generic accesses before later async ones), mbarrier_init, cta, gpu, sys, tensormap."""

    synchronises: ClassVar[bool] = True
    kind: str
    reason: str = ""


@node
class SetRegs(Instr):
    """setmaxnreg: direction inc or dec."""

    scope: ClassVar[str] = "warpgroup"
    needs: ClassVar[str | None] = "setmaxnreg"
    count: int
    direction: str


@node
class Elect(Instr):
    """`body` by one lane of each warp (who = warp) or by one thread of the role or block."""

    scope: ClassVar[str] = "warp"
    who: str
    body: tuple[Stmt, ...]


@node
class Prefetch(Instr):
    """A tensor map (by name) or a memory address into a cache."""

    what: Any  # str (map) or Addr
    level: str = "L2"


@node
class SchedHint(Instr):
    """Scheduling advice with no meaning of its own: priority, group or iglp."""

    kind: str
    value: int


@node
class GridDep(Instr):
    """Programmatic dependent launch: wait for the previous grid, or let the next one launch."""

    needs: ClassVar[str | None] = "griddep"
    action: str


@node
class Trap(Instr):
    """Ends the kernel with an error."""

    message: str = ""


@node
class Stamp(Instr):
    """Profile builds: one clock record."""

    lane: int
    stage: str
    role: str


@node
class RawSource(Instr):
    """Foreign text of the user's, in the dialect of the target; the simulator refuses it."""

    text: str
    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()


def rows() -> tuple[type[Instr], ...]:
    """All instruction classes, in the order of this table."""
    return tuple(v for v in globals().values() if isinstance(v, type) and issubclass(v, Instr) and v is not Instr)
