"""Kernels of each level for the tests of this room, built by hand."""

from __future__ import annotations

from tileworkbench.errors import Loc
from tileworkbench.ir.dtype import DTYPES, FLOAT16, FLOAT32, UINT32
from tileworkbench.ir.expr import Buffer, Load, Special, Var, ceildiv, compare, const, maximum
from tileworkbench.ir.instr import (
    Addr,
    Bar,
    BarArrive,
    BarInit,
    BarWait,
    CommitGroup,
    Desc,
    Elect,
    Fence,
    LoadMem,
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
from tileworkbench.ir.op import Impl
from tileworkbench.ir.planned import Acquire, Channel, Commit, Complete, Issue, Release, Role, Wait
from tileworkbench.ir.stmt import ONE, ZERO, Alloc, For, Region, Store, whole
from tileworkbench.ops.copy import Copy
from tileworkbench.ops.fill import Fill
from tileworkbench.ops.gemm import Gemm
from tileworkbench.ops.parallel import Parallel

FILE = "cell.py"


def at(line: int) -> Loc:
    return Loc(FILE, line)


def part(buffer, *starts, extents):
    return Region(buffer, tuple(const(s) if isinstance(s, int) else s for s in starts), extents)


class Gemm16:
    """C = relu(A @ B) for fp16 tiles of 128 x 128 x 64; `m` may be symbolic."""

    def __init__(self, m=1024, stages=3):
        self.A = Buffer("A", (m, 512), FLOAT16)
        self.B = Buffer("B", (512, 256), FLOAT16)
        self.C = Buffer("C", (m, 256), FLOAT16)
        self.A_s = Buffer("A_shared", (128, 64), FLOAT16, "shared")
        self.B_s = Buffer("B_shared", (64, 128), FLOAT16, "shared")
        self.C_l = Buffer("C_local", (128, 128), FLOAT32, "fragment")
        self.bx, self.by, self.k = Var("bx"), Var("by"), Var("k")
        i, j = Var("i"), Var("j")
        A, B, C, A_s, B_s, C_l, bx, by, k = (
            self.A,
            self.B,
            self.C,
            self.A_s,
            self.B_s,
            self.C_l,
            self.bx,
            self.by,
            self.k,
        )
        self.load_a = Copy(part(A, by * 128, k * 64, extents=(128, 64)), whole(A_s), loc=at(8))
        self.load_b = Copy(part(B, k * 64, bx * 128, extents=(64, 128)), whole(B_s), loc=at(9))
        self.gemm = Gemm(whole(A_s), whole(B_s), whole(C_l), False, False, const(False), loc=at(10))
        self.clear = Fill(whole(C_l), const(0.0), loc=at(6))
        relu = Store(C_l, (i, j), maximum(Load(C_l, (i, j)), 0.0), loc=at(12))
        self.relu = Parallel((i, j), (128, 128), (relu,), loc=at(11))
        self.store = Copy(whole(C_l), part(C, by * 128, bx * 128, extents=(128, 128)), loc=at(13))
        self.loop = For(
            k,
            ZERO,
            const(8),
            ONE,
            (self.load_a, self.load_b, self.gemm),
            "pipelined",
            (("num_stages", stages),),
            loc=at(7),
        )
        self.allocs = (Alloc(A_s, loc=at(3)), Alloc(B_s, loc=at(4)), Alloc(C_l, loc=at(5)))
        self.grid = (2, ceildiv(m, 128) if not isinstance(m, int) else -(-m // 128))

    def tile(self) -> Kernel:
        body = (*self.allocs, self.clear, self.loop, self.relu, self.store)
        return Kernel(
            "gemm", (self.A, self.B, self.C), self.grid, (self.bx, self.by), 128, body, outputs=(2,), loc=at(1)
        )

    def planned(self, **changes) -> Kernel:
        ring = Channel("ring", (self.A_s, self.B_s), 3, "load", ("compute",), "bytes", 32768)
        tma, wgmma = Impl("tma", "tma", completion="bytes", bytes=16384), Impl("wgmma", "tensor", "warpgroup", "group")
        st, alu = Impl("st.global", "lsu"), Impl("registers", "alu")
        load = For(
            self.k, ZERO, const(8), ONE,
            (Acquire(ring), Issue(self.load_a, tma, loc=at(8)), Issue(self.load_b, tma, loc=at(9)), Commit(ring)),
            "serial", loc=at(7),
        )  # fmt: skip
        k2 = Var("k")
        use = For(
            k2, ZERO, const(8), ONE,
            (Wait(ring), Issue(self.gemm, wgmma, loc=at(10)), Complete(self.gemm, wgmma, loc=at(10)), Release(ring)),
            "serial", loc=at(7),
        )  # fmt: skip
        compute = (
            Issue(self.clear, alu, loc=at(6)),
            use,
            Issue(self.relu, alu, loc=at(11)),
            Issue(self.store, st, loc=at(13)),
        )
        body = (*self.allocs, Role("compute", 0, 4, compute, 240), Role("load", 4, 1, (load,), 24))
        made = Kernel(
            "gemm", (self.A, self.B, self.C), self.grid, (self.bx, self.by), 128, body, level="planned",
            launch_threads=256, layouts={self.A_s: "swizzle 128", self.B_s: "swizzle 128", self.C_l: "wgmma d"},
            versions={self.A_s: 3, self.B_s: 3}, channels=(ring,), loc=at(1),
        )  # fmt: skip
        return made.with_(**changes)


class ThreadGemm:
    """A thread-level kernel: a load role with TMA and an mbarrier ring, a compute role with wgmma."""

    def __init__(self, depth=3, bytes_=32768, count=None):
        self.A = Buffer("A", (1024, 512), FLOAT16)
        self.C = Buffer("C", (1024, 256), FLOAT32)
        self.A_s = Buffer("A_shared", (depth * 128 * 64,), FLOAT16, "shared")
        self.B_s = Buffer("B_shared", (depth * 64 * 128,), FLOAT16, "shared")
        self.full = Buffer("full", (depth,), DTYPES["uint64"], "barrier")
        self.empty = Buffer("empty", (depth,), DTYPES["uint64"], "barrier")
        self.acc = Buffer("acc", (64,), FLOAT32, "reg")
        bx, by, k, s, n = Var("bx"), Var("by"), Var("k"), Var("s"), Var("n")
        stage, phase = k % depth, k // depth % 2
        self.arrive = BarArrive(Bar(self.full, stage), bytes_, reason="A and B of trip k")
        self.loads = (
            BarWait(Bar(self.empty, stage), (phase ^ 1).astype(UINT32), reason="ring free"),
            Elect(
                "role",
                (
                    self.arrive,
                    TmaLoad(Addr(self.A_s, stage * 8192), "A_map", (k * 64, by * 128), Bar(self.full, stage), 16384),
                    TmaLoad(Addr(self.B_s, stage * 8192), "B_map", (bx * 128, k * 64), Bar(self.full, stage), 16384),
                ),
            ),
        )
        desc_a = Desc(Addr(self.A_s, stage * 8192), 128, 1, 1024)
        desc_b = Desc(Addr(self.B_s, stage * 8192), 128, 8192, 1024, "mn")
        self.wgmma = Wgmma(
            "wgmma_m64n128k16_f16", Reg(self.acc, ZERO, 64), desc_a, desc_b, compare("eq", k, 0), loc=at(10)
        )
        self.use = (
            BarWait(Bar(self.full, stage), phase.astype(UINT32), reason="A and B of trip k"),
            WgmmaFence((Reg(self.acc, ZERO, 64),)),
            self.wgmma,
            CommitGroup("wgmma"),
            WaitGroup("wgmma", 0),
            BarArrive(Bar(self.empty, stage), reason="ring free"),
        )
        thread = Special("role_thread")
        self.epilogue = For(
            n, ZERO, const(16), ONE,
            (StoreMem(Addr(self.C, thread * 256 + n * 4), Reg(self.acc, n * 4, 4)),), "unroll", loc=at(13),
        )  # fmt: skip
        init = For(
            s, ZERO, const(depth), ONE,
            (BarInit(Bar(self.full, s), 1), BarInit(Bar(self.empty, s), 128)), "unroll",
        )  # fmt: skip
        self.setup = (
            Elect("block", (init, Fence("mbarrier_init", "barriers before use"))),
            Sync("block", id=0, threads=256, reason="barriers before use"),
        )
        k2 = k
        self.compute = Role(
            "compute", 0, 4,
            (SetRegs(240, "inc"), For(k2, ZERO, const(8), ONE, self.use, loc=at(7)), self.epilogue), 240,
        )  # fmt: skip
        self.load = Role("load", 4, 4, (SetRegs(24, "dec"), For(k, ZERO, const(8), ONE, self.loads, loc=at(7))), 24)
        self.block_vars = (bx, by)
        self.depth = depth

    def kernel(self, **changes) -> Kernel:
        size = self.depth * 16384
        maps = tuple(TmaMap(name, self.A, (512, 1024), (1024,), (64, 128), 128) for name in ("A_map", "B_map"))
        made = Kernel(
            "gemm", (self.A, self.C), (2, 8), self.block_vars, 128, (*self.setup, self.load, self.compute),
            level="thread",
            launch_threads=256, buffers=(self.A_s, self.B_s, self.full, self.empty, self.acc),
            offsets={self.A_s: 0, self.B_s: size, self.full: 2 * size, self.empty: 2 * size + 8 * self.depth},
            shared_bytes=2 * size + 16 * self.depth, maps=maps, loc=at(1),
        )  # fmt: skip
        return made.with_(**changes)


def vector_add() -> Kernel:
    """Thread level without roles: C = A + B, one vector of four a thread."""
    n = 4096
    A, B, C = (Buffer(name, (n,), FLOAT32) for name in "ABC")
    a, b = Buffer("a", (4,), FLOAT32, "reg"), Buffer("b", (4,), FLOAT32, "reg")
    bx, i = Var("bx"), Var("i")
    at_ = bx * 512 + Special("thread") * 4
    body = (
        LoadMem(Reg(a, ZERO, 4), Addr(A, at_)),
        LoadMem(Reg(b, ZERO, 4), Addr(B, at_), pred=at_ < n, fill=const(0.0)),
        For(i, ZERO, const(4), ONE, (Store(a, (i,), Load(a, (i,)) + Load(b, (i,))),), "unroll"),
        StoreMem(Addr(C, at_), Reg(a, ZERO, 4)),
    )
    return Kernel("add", (A, B, C), (n // 512,), (bx,), 128, body, level="thread", launch_threads=128, buffers=(a, b))
