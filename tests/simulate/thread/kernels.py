"""Hand-written thread-level kernels for the tests. Every statement gets its own line number as its place."""

from __future__ import annotations

from itertools import count
from typing import Any

from tileworkbench.errors import Loc
from tileworkbench.ir.dtype import DTYPES
from tileworkbench.ir.expr import Buffer, Expr, Load, Special, Var, const
from tileworkbench.ir.instr import (
    Addr,
    Bar,
    CommitGroup,
    CopyAsync,
    Fence,
    LdMatrix,
    LoadMem,
    Mma,
    Reg,
    StoreMem,
    Sync,
    WaitGroup,
)
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.node import Node, replace, rewrite
from tileworkbench.ir.stmt import For, If, Stmt, Store

F16, F32, I32 = DTYPES["float16"], DTYPES["float32"], DTYPES["int32"]
TX, LANE, WARP, ROLE_TX = Special("thread"), Special("lane"), Special("warp"), Special("role_thread")


def tensor(name: str, shape: tuple[Any, ...], dtype: str = "float16") -> Buffer:
    return Buffer(name, shape, DTYPES[dtype])


def shared(name: str, extent: int, dtype: str = "float16") -> Buffer:
    return Buffer(name, (extent,), DTYPES[dtype], space="shared")


def regs(name: str, extent: int, dtype: str = "float32") -> Buffer:
    return Buffer(name, (extent,), DTYPES[dtype], space="reg")


def bars(name: str, extent: int) -> Buffer:
    return Buffer(name, (extent,), DTYPES["uint64"], space="barrier")


def addr(buffer: Buffer, offset: Any = 0) -> Addr:
    return Addr(buffer, offset if isinstance(offset, Expr) else const(offset))


def reg(buffer: Buffer, start: Any = 0, count: int | None = None) -> Reg:
    return Reg(buffer, start if isinstance(start, Expr) else const(start), buffer.shape[0] if count is None else count)


def bar(buffer: Buffer, index: Any = 0) -> Bar:
    return Bar(buffer, index if isinstance(index, Expr) else const(index))


def at(buffer: Buffer, index: Any) -> Load:
    return Load(buffer, (index if isinstance(index, Expr) else const(index),))


def put(buffer: Buffer, index: Any, value: Any) -> Store:
    value = value if isinstance(value, Expr) else const(value, buffer.dtype)
    return Store(buffer, (index if isinstance(index, Expr) else const(index),), value)


def loop(n: Any, body: Any, name: str = "i") -> For:
    """`for var in range(n)`, the body made by a function of the variable."""
    var = Var(name)
    return For(var, const(0), n if isinstance(n, Expr) else const(n), const(1), tuple(body(var)))


def branch(cond: Expr, *then: Stmt) -> If:
    return If(cond, tuple(then))


def kernel(
    params: Any, body: Any, threads: int, buffers: Any = (), grid: Any = (1,), block_vars: Any = (), **more: Any
) -> Kernel:
    """Places shared buffers one after another (1,024-byte aligned; barriers 8) and numbers the statements' lines."""
    offsets, at_byte = {}, 0
    for b in buffers:
        if b.space in ("shared", "barrier"):
            align = 1024 if b.space == "shared" else 8
            at_byte = -(-at_byte // align) * align
            offsets[b] = at_byte
            at_byte += b.static_size() * b.dtype.bytes
    offsets.update(more.pop("offsets", {}))
    made = Kernel(
        "k", tuple(params), tuple(grid), tuple(block_vars), threads, tuple(body), level="thread",
        launch_threads=threads,
        buffers=tuple(buffers), offsets=offsets, shared_bytes=more.pop("shared_bytes", at_byte), **more,
    )  # fmt: skip
    return numbered(made)


def numbered(k: Kernel) -> Kernel:
    """Gives every statement a place: line n of file "k" in program order."""
    lines = count(1)

    def go(n: Node) -> Any:
        from tileworkbench.ir.node import map_children

        if isinstance(n, Stmt):
            n = replace(n, loc=Loc("k", next(lines)))
        return map_children(n, go)

    return k.with_(body=tuple(go(s) for s in k.body))


def find(k: Kernel, cls: type, nth: int = 0, **fields: Any) -> Stmt:
    """The nth statement of a class whose fields have these values."""
    from tileworkbench.ir.node import walk

    found = [n for n in walk(k.body) if isinstance(n, cls) and all(getattr(n, f) == v for f, v in fields.items())]
    return found[nth]


def without(k: Kernel, gone: Stmt) -> Kernel:
    """The kernel with one statement dropped."""
    return swap(k, gone, None)


def swap(k: Kernel, old: Node, new: Any) -> Kernel:
    """The kernel with one node replaced (None drops a statement)."""
    body: list[Any] = []
    for s in k.body:
        got = new if s is old else rewrite(s, lambda n: n)
        if s is not old:
            got = _swap(s, old, new)
        if got is not None:
            body.extend(got if isinstance(got, tuple) else (got,))
    return k.with_(body=tuple(body))


def _swap(n: Node, old: Node, new: Any) -> Any:
    from tileworkbench.ir.node import map_children

    return new if n is old else map_children(n, lambda c: _swap(c, old, new))


# --- an sm_80 GEMM ----------------------------------------------------------------------------------------------------
def ampere_gemm(m: int = 64, n: int = 64, k: int = 64, bk: int = 32, stages: int = 2) -> Kernel:
    """C = A·B, one 64 × 64 tile, four warps of 32 × 32, cp.async into `stages` versions, XOR-swizzled shared memory."""
    a, b, c = tensor("A", (m, k)), tensor("B", (k, n)), tensor("C", (m, n), "float32")
    sa, sb = shared("As", stages * m * bk), shared("Bs", stages * bk * n)
    ra, rb, acc, out = regs("ra", 16, "float16"), regs("rb", 16, "float16"), regs("acc", 32), regs("out", 2)
    ca, cb = bk // 8, n // 8  # 16-byte chunks a row

    def swizzled(row: Expr, chunk: Expr, chunks: int) -> Expr:
        return (row * chunks + (chunk ^ (row % chunks))) * 8

    def stage(tile: Any, slot: Any) -> list[Stmt]:
        made: list[Stmt] = []
        for i in range(m * ca // 128):
            idx = TX + i * 128
            row, chunk = idx // ca, idx % ca
            made.append(
                CopyAsync(
                    addr(sa, slot * (m * bk) + swizzled(row, chunk, ca)), addr(a, row * k + tile * bk + chunk * 8), 16
                )
            )
        for i in range(bk * cb // 128):
            idx = TX + i * 128
            row, chunk = idx // cb, idx % cb
            made.append(
                CopyAsync(
                    addr(sb, slot * (bk * n) + swizzled(row, chunk, cb)), addr(b, (tile * bk + row) * n + chunk * 8), 16
                )
            )
        return made

    wm, wn = WARP % 2 * 32, WARP // 2 * 32
    tiles = k // bk

    def main(t: Var) -> list[Stmt]:
        ahead = t + (stages - 1)
        slot = t % stages
        body: list[Stmt] = [
            WaitGroup("copy", stages - 2),
            Sync("block", reason="As, Bs full"),
            If(ahead < tiles, tuple(stage(ahead, ahead % stages))),
            CommitGroup("copy"),
        ]
        for kk in range(bk // 16):
            for i in range(2):
                row, chunk = wm + i * 16 + LANE % 16, LANE // 16 + kk * 2
                body.append(LdMatrix(reg(ra, i * 8, 8), addr(sa, slot * (m * bk) + swizzled(row, chunk, ca)), 4))
            for j in range(2):
                row, chunk = LANE % 16 + kk * 16, (wn + j * 16) // 8 + LANE // 16
                body.append(LdMatrix(reg(rb, j * 8, 8), addr(sb, slot * (bk * n) + swizzled(row, chunk, cb)), 4, True))
            for i in range(2):
                for j in range(4):
                    d = reg(acc, (i * 4 + j) * 4, 4)
                    body.append(Mma("mma_m16n8k16", d, reg(ra, i * 8, 8), reg(rb, j * 4, 4), d))
        return body

    body: list[Stmt] = [loop(32, lambda i: [put(acc, i, 0.0)])]
    for s in range(stages - 1):
        body += [*stage(s, const(s)), CommitGroup("copy")]
    body.append(loop(tiles, main, "t"))
    for i in range(2):
        for j in range(4):
            for h in range(2):
                row = wm + i * 16 + LANE // 4 + h * 8
                col = wn + j * 8 + LANE % 4 * 2
                body.append(StoreMem(addr(c, row * n + col), reg(acc, (i * 4 + j) * 4 + h * 2, 2)))
    return kernel((a, b, c), body, 128, (sa, sb, ra, rb, acc, out), outputs=(2,))


__all__ = ["Fence", "LoadMem"]
