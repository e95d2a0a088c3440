"""Thread-level kernels made by hand: a frame for any statements, an elementwise kernel, two pipelined GEMMs."""

from __future__ import annotations

from typing import Any

from tileworkbench.ir.dtype import DTYPES, FLOAT16, FLOAT32, INT32, DType
from tileworkbench.ir.expr import Binary, Buffer, Cast, Expr, Load, Special, Var, ceildiv, const
from tileworkbench.ir.instr import (
    Addr,
    Bar,
    BarArrive,
    BarInit,
    BarWait,
    CommitGroup,
    CopyAsync,
    Desc,
    Elect,
    Fence,
    LdMatrix,
    LoadMem,
    Mma,
    Reg,
    SetRegs,
    StoreMem,
    Sync,
    TmaLoad,
    WaitGroup,
    Wgmma,
    WgmmaFence,
)
from tileworkbench.ir.kernel import Kernel, TmaMap
from tileworkbench.ir.planned import Role
from tileworkbench.ir.stmt import For, If, Let, Stmt, Store

ZERO = const(0)
THREAD, LANE, WARP = Special("thread"), Special("lane"), Special("warp")


def reg(name: str, count: int, dtype: DType = FLOAT32) -> Buffer:
    return Buffer(name, (count,), dtype, "reg")


def run(b: Buffer, start: int | Expr = 0, count: int | None = None) -> Reg:
    at = start if isinstance(start, Expr) else const(start)
    size = b.static_size() or 0
    return Reg(b, at, (size - start if isinstance(start, int) else size) if count is None else count)


def addr(b: Buffer, offset: int | Expr = 0) -> Addr:
    return Addr(b, offset if isinstance(offset, Expr) else const(offset))


class Frame:
    """Two tensors of each dtype asked for, shared memory, barriers and maps around a list of statements. Registers that
    the statements write are stored at the end, so that nothing is optimised away."""

    def __init__(self) -> None:
        self.params: list[Any] = []
        self.offsets: dict[Buffer, int] = {}
        self.regs: list[Buffer] = []
        self.maps: list[TmaMap] = []
        self.kept: set[Buffer] = set()
        self.size = 0

    def tensor(self, dtype: DType = FLOAT32, name: str = "G", shape: tuple[Any, ...] = (4096,)) -> Buffer:
        self.params.append(Buffer(f"{name}{len(self.params)}", shape, dtype))
        return self.params[-1]

    def shared(self, count: int, dtype: DType = FLOAT32, name: str = "S", space: str = "shared") -> Buffer:
        b = Buffer(f"{name}{len(self.offsets)}", (count,), dtype, space)
        self.offsets[b] = self.size
        self.size += -(-count * dtype.bytes // 1024) * 1024
        return b

    def barrier(self, count: int = 1) -> Bar:
        return Bar(self.shared(count, DTYPES["uint64"], "bar", "barrier"), ZERO)

    def reg(self, count: int, dtype: DType = FLOAT32) -> Buffer:
        self.regs.append(reg(f"r{len(self.regs)}", count, dtype))
        return self.regs[-1]

    def keep(self, b: Buffer) -> Stmt:
        """A register buffer to memory, here and not at the end."""
        self.kept.add(b)
        out, i, size = self.tensor(b.dtype, "out"), Var(f"{b.name}_i"), b.static_size() or 1
        return For(i, ZERO, const(size), const(1), (StoreMem(addr(out, THREAD * size + i), Reg(b, i)),), "unroll")

    def map(self, box: tuple[int, ...], dtype: DType = FLOAT16) -> str:
        t = self.tensor(dtype, "M", tuple(64 * 2**i for i in range(len(box))))
        strides = tuple(64 * dtype.bytes * 2**i for i in range(len(box) - 1))
        self.maps.append(TmaMap(f"{t.name}_map", t, tuple(reversed(t.shape)), strides, box))
        return self.maps[-1].name

    def kernel(self, *body: Stmt, threads: int = 128, keep: bool = True, **fields: Any) -> Kernel:
        """The statements, and then every register to memory."""
        tail = [self.keep(b) for b in self.regs if keep and b not in self.kept]
        return Kernel(name=fields.pop("name", "k"), params=tuple(self.params), grid=fields.pop("grid", (4,)),
                      block_vars=fields.pop("block_vars", ()), threads=threads, body=(*body, *tail), level="thread",
                      buffers=(*self.regs, *self.offsets), offsets=self.offsets, shared_bytes=self.size,
                      maps=tuple(self.maps), **fields)  # fmt: skip


def elementwise(dtype: DType = FLOAT16, name: str = "add") -> Kernel:
    """C = A + B with eight elements a thread and a tail."""
    n, bx, i, off = Var("n"), Var("bx"), Var("i"), Var("off")
    tensors = [Buffer(t, (n,), dtype) for t in "ABC"]
    width = 16 // dtype.bytes
    regs = [reg(t, width, dtype) for t in "abc"]
    loads = [
        LoadMem(run(r), addr(t, off), pred=off < n, fill=const(0, dtype))
        for r, t in zip(regs[:2], tensors[:2], strict=True)
    ]
    add = For(i, ZERO, const(width), const(1),
              (Store(regs[2], (i,), Load(regs[0], (i,)) + Load(regs[1], (i,))),), "unroll")  # fmt: skip
    body = (
        Let(off, (bx * 128 + THREAD) * width),
        *loads,
        add,
        StoreMem(addr(tensors[2], off), run(regs[2]), pred=off < n),
    )
    return Kernel(
        name, tuple(tensors), (ceildiv(n, 128 * width),), (bx,), 128, body, level="thread", buffers=tuple(regs)
    )


def mma_gemm(stages: int = 3) -> Kernel:
    """A warp-level GEMM loop over a cp.async ring: one 16 × 8 tile a warp, k in steps of 16."""
    k, ko, i = Var("K"), Var("ko"), Var("i")
    a, b = Buffer("A", (128, k), FLOAT16), Buffer("B", (128, k), FLOAT16)
    c = Buffer("C", (128, 8), FLOAT32)
    a_s, b_s = (Buffer(n, (stages * 1024,), FLOAT16, "shared") for n in ("A_s", "B_s"))
    frag_a, frag_b, acc = reg("fa", 8, FLOAT16), reg("fb", 4, FLOAT16), reg("acc", 4)
    version = ko % stages * 1024
    copy = [
        CopyAsync(addr(s, version + THREAD * 8), addr(g, THREAD * k + ko * 16), 16, valid=(k - ko * 16) * 2)
        for g, s in ((a, a_s), (b, b_s))
    ]
    trip = (
        *copy, CommitGroup("copy"), WaitGroup("copy", stages - 2), Sync("block", reason="stage of A and B is full"),
        LdMatrix(run(frag_a), addr(a_s, version + LANE % 16 * 16 + LANE // 16 * 8), 4),
        LdMatrix(run(frag_b), addr(b_s, version + LANE % 16 * 8), 2, True),
        Mma("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", run(acc), run(frag_a), run(frag_b), run(acc)),
        Sync("block", reason="stage of A and B is free"),
    )  # fmt: skip
    clear = For(i, ZERO, const(4), const(1), (Store(acc, (i,), const(0.0)),), "unroll")
    body = (clear, For(ko, ZERO, ceildiv(k, 16), const(1), trip, "pipelined"),
            StoreMem(addr(c, THREAD * 8), run(acc, 0, 2)),
            StoreMem(addr(c, THREAD * 8 + 2), run(acc, 2, 2)))  # fmt: skip
    return Kernel("mma_gemm", (a, b, c), (1,), (), 128, body, level="thread", buffers=(frag_a, frag_b, acc, a_s, b_s),
                  offsets={a_s: 0, b_s: stages * 2048}, shared_bytes=stages * 4096)  # fmt: skip


def wgmma_gemm(n: int = 256, stages: int = 4, consumers: int = 2) -> Kernel:
    """A producer role with TMA, consumer roles of 64 × n with wgmma, full and empty barriers, 128-byte swizzle."""
    bk, bm = 64, 64 * consumers
    m_, n_, k_ = Var("M"), Var("N"), Var("K")
    bx, by = Var("bx"), Var("by")
    a, b, c = Buffer("A", (m_, k_), FLOAT16), Buffer("B", (n_, k_), FLOAT16), Buffer("C", (m_, n_), FLOAT16)
    a_s = Buffer("A_s", (stages, bm, bk), FLOAT16, "shared")
    b_s = Buffer("B_s", (stages, n, bk), FLOAT16, "shared")
    full, empty = (Buffer(x, (stages,), DTYPES["uint64"], "barrier") for x in ("full", "empty"))
    acc, half = reg("acc", n // 2), reg("half", n // 2, FLOAT16)
    a_at = stages * bm * bk * 2
    offsets = {a_s: 0, b_s: a_at, full: a_at + stages * n * bk * 2, empty: a_at + stages * n * bk * 2 + 8 * stages}
    trips = ceildiv(k_, bk)
    producer = Role("load", 4 * consumers, 4, (
        SetRegs(24, "dec"), If(Special("role_thread") < 32, (Elect("warp", (_ring(trips, stages, lambda ko, s, ph: (
            BarWait(Bar(empty, s), ph ^ 1, reason="slot is free"),
            BarArrive(Bar(full, s), (bm + n) * bk * 2),
            TmaLoad(addr(a_s, s * (bm * bk)), "A_map", (ko * bk, by * bm), Bar(full, s), bm * bk * 2),
            TmaLoad(addr(b_s, s * (n * bk)), "B_map", (ko * bk, bx * n), Bar(full, s), n * bk * 2),
        )),)),))))  # fmt: skip
    atom = f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16"
    group = Special("role_thread") // 128

    def consume(ko: Var, s: Expr, ph: Expr) -> tuple[Stmt, ...]:
        steps = []
        for kk in range(bk // 16):
            da = Desc(addr(a_s, s * (bm * bk) + group * (64 * bk) + kk * 16), 128, 16, 1024)
            db = Desc(addr(b_s, s * (n * bk) + kk * 16), 128, 16, 1024)
            zero = (ko == 0) if kk == 0 else const(False)
            steps.append(Wgmma(atom, run(acc), da, db, zero))
        return (BarWait(Bar(full, s), ph, reason="slot is full"), WgmmaFence((run(acc),)), *steps, CommitGroup("wgmma"),
                WaitGroup("wgmma", 0), Elect("warp", (BarArrive(Bar(empty, s)),)))  # fmt: skip

    i = Var("i")
    row = by * bm + Special("role_thread") // 32 * 16 + LANE // 4
    convert = For(
        i, ZERO, const(n // 2), const(1), (Store(half, (i,), Cast(Load(acc, (i,)), dtype=FLOAT16)),), "unroll"
    )
    stores = For(i, ZERO, const(n // 8), const(1), (
        StoreMem(addr(c, row * n_ + bx * n + i * 8 + LANE % 4 * 2), Reg(half, i * 4, 2)),
        StoreMem(addr(c, (row + 8) * n_ + bx * n + i * 8 + LANE % 4 * 2), Reg(half, i * 4 + 2, 2))),
        "unroll")  # fmt: skip
    consumer = Role("mma", 0, 4 * consumers, (SetRegs(240, "inc"), _ring(trips, stages, consume), convert, stores))
    s = Var("s")
    init = Elect("block", (
        For(s, ZERO, const(stages), const(1), (BarInit(Bar(full, s), 1), BarInit(Bar(empty, s), 4 * consumers)),
            "unroll"),
        Fence("mbarrier_init")))  # fmt: skip
    maps = (
        TmaMap("A_map", a, (k_, m_), (k_ * 2,), (bk, bm), 128),
        TmaMap("B_map", b, (k_, n_), (k_ * 2,), (bk, n), 128),
    )
    return Kernel("wgmma_gemm", (a, b, c), (ceildiv(n_, n), ceildiv(m_, bm)), (bx, by), 128 * consumers,
                  (init, Sync("block", reason="barriers are ready"), consumer, producer), level="thread",
                  launch_threads=128 * (consumers + 1), buffers=(acc, half, *offsets), offsets=offsets,
                  shared_bytes=offsets[empty] + 8 * stages, maps=maps)  # fmt: skip


def _ring(trips: Expr, stages: int, body: Any) -> For:
    ko = Var("ko")
    phase = Binary("and", ko // stages, const(1), dtype=INT32)
    return For(ko, ZERO, trips, const(1), body(ko, ko % stages, phase), "pipelined")
