"""Hand-written sm_90a kernels for the tests: a TMA ring between roles, wgmma, and a TMA store."""

from __future__ import annotations

from tileworkbench.ir.expr import Var, compare, const, select
from tileworkbench.ir.instr import (
    BarArrive,
    BarInit,
    BarWait,
    CommitGroup,
    Desc,
    Elect,
    Fence,
    StoreMem,
    Sync,
    TmaLoad,
    TmaStore,
    WaitGroup,
    Wgmma,
    WgmmaFence,
)
from tileworkbench.ir.kernel import Kernel, TmaMap
from tileworkbench.ir.planned import Role
from tileworkbench.ir.stmt import Stmt, Store

from .kernels import ROLE_TX, addr, at, bar, bars, branch, kernel, loop, put, reg, regs, shared, tensor


def _map(name, buffer, shape, box, swizzle=128):
    return TmaMap(name, buffer, tuple(reversed(shape)), (shape[1] * 2,), box, swizzle)


def ring(tiles: int = 5, stages: int = 2, columns: int = 64) -> Kernel:
    """One 64 × 64 fp16 tile of C = A·Bᵀ (both K-major): a load role fills a ring of `stages` by TMA, a compute role
    (one warpgroup) multiplies by wgmma and stores through shared memory by TMA."""
    m, n, bk = 64, columns, 64
    k = tiles * bk
    a, b, c = tensor("A", (m, k)), tensor("B", (n, k)), tensor("C", (m, n))
    sa, sb, sc = shared("As", stages * m * bk), shared("Bs", stages * n * bk), shared("Cs", m * n)
    full, empty = bars("full", stages), bars("empty", stages)
    acc, out = regs("acc", n // 2), regs("out", 2, "float16")
    slot, turn = regs("slot", 1, "int32"), regs("turn", 1, "int32")
    maps = (_map("A_map", a, (m, k), (64, m)), _map("B_map", b, (n, k), (64, n)), _map("C_map", c, (m, n), (64, m)))

    def step() -> list[Stmt]:
        """The cursor: slot + 1, and one more turn when it wraps."""
        last = compare("eq", at(slot, 0), stages - 1)
        return [
            Store(turn, (const(0),), select(last, at(turn, 0) + 1, at(turn, 0))),
            Store(slot, (const(0),), select(last, const(0), at(slot, 0) + 1)),
        ]

    size = m * bk * 2 + n * bk * 2

    def produce(t: Var) -> list[Stmt]:
        s = at(slot, 0)
        return [
            BarWait(bar(empty, s), (at(turn, 0) + 1) % 2, at(turn, 0) - 1, reason="stage free"),
            Elect(
                "role",
                (
                    BarArrive(bar(full, s), size),
                    TmaLoad(addr(sa, s * (m * bk)), "A_map", (t * bk, const(0)), bar(full, s), m * bk * 2),
                    TmaLoad(addr(sb, s * (n * bk)), "B_map", (t * bk, const(0)), bar(full, s), n * bk * 2),
                ),
            ),
            *step(),
        ]

    def consume(t: Var) -> list[Stmt]:
        s = at(slot, 0)
        products: list[Stmt] = []
        for kk in range(bk // 16):
            zero = compare("eq", t, 0) if kk == 0 else const(False)
            da = Desc(addr(sa, s * (m * bk) + kk * 16), 128, 0, 1024)
            db = Desc(addr(sb, s * (n * bk) + kk * 16), 128, 0, 1024)
            products.append(Wgmma(f"wgmma.m64n{n}k16", reg(acc), da, db, zero))
        return [
            BarWait(bar(full, s), at(turn, 0) % 2, at(turn, 0), reason="stage full"),
            WgmmaFence((reg(acc),)),
            *products,
            CommitGroup("wgmma"),
            WaitGroup("wgmma", 0),
            BarArrive(bar(empty, s), reason="stage read"),
            *step(),
        ]

    epilogue: list[Stmt] = []
    for i in range(n // 8):
        for h in range(2):
            row = ROLE_TX // 32 * 16 + ROLE_TX % 32 // 4 + h * 8
            chunk = const(i) ^ (row % 8)
            epilogue += [
                put(out, 0, at(acc, i * 4 + h * 2).astype("float16")),
                put(out, 1, at(acc, i * 4 + h * 2 + 1).astype("float16")),
                StoreMem(addr(sc, row * 64 + chunk * 8 + ROLE_TX % 4 * 2), reg(out)),
            ]
    start = [put(slot, 0, 0), put(turn, 0, 0)]
    body: list[Stmt] = [
        branch(
            compare("eq", ROLE_TX, 0),
            *[BarInit(bar(full, i), 1) for i in range(stages)],
            *[BarInit(bar(empty, i), 128) for i in range(stages)],
            Fence("mbarrier_init"),
        ),
        Sync("block", reason="barriers ready"),
        Role("compute", 0, 4, (
            *start, loop(tiles, consume, "t"), *epilogue, Fence("proxy_async"), Sync("role", id=1, threads=128),
            Elect("role", (
                TmaStore("C_map", (const(0), const(0)), addr(sc)), CommitGroup("bulk"), WaitGroup("bulk", 0),
            )),
        )),
        Role("load", 4, 1, (*start, loop(tiles, produce, "t"))),
    ]  # fmt: skip
    made = kernel(
        (a, b, c), body, 160, (sa, sb, sc, full, empty, acc, out, slot, turn), maps=maps, outputs=(2,),
    )  # fmt: skip
    return made.with_(threads=128)
