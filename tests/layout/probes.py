"""Kernels that run one matrix instruction with operands placed by the layout tables, element by element.

A wrong row of a table shows as a wrong product: integers differ in every row and column, and A, B and C are addressed
through three different tables. (A permutation of K common to A and B would not show, and would not matter.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tileworkbench.ir.dtype import dtype
from tileworkbench.ir.expr import Buffer, Expr, Special, Var, as_expr, compare, const
from tileworkbench.ir.instr import (
    Addr,
    CommitGroup,
    Desc,
    Fence,
    LoadMem,
    Mma,
    MmaSparse,
    Reg,
    StoreMem,
    Sync,
    WaitGroup,
    Wgmma,
    WgmmaFence,
)
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.planned import Role
from tileworkbench.ir.stmt import ONE, ZERO, For, If, Stmt, Store
from tileworkbench.layout import Distribution, SharedLayout
from tileworkbench.layout.atoms import Atom
from tileworkbench.layout.descriptor import wgmma_descriptor
from tileworkbench.layout.mma_sp import metadata_fragment
from tileworkbench.layout.wgmma import wgmma_metadata_fragment

THREAD = Special("thread")
CONTAINER = {"tfloat32": "float32"}


def tensor(name: str, shape: tuple[int, ...], kind: str) -> Buffer:
    return Buffer(name, shape, dtype(CONTAINER.get(kind, kind)))


def registers(name: str, fragment: Distribution, kind: str) -> Buffer:
    return Buffer(name, (fragment.registers,), dtype(CONTAINER.get(kind, kind)), "reg")


def move(fragment: Distribution, regs: Buffer, memory: Buffer, *, store: bool = False, swap: bool = False) -> Stmt:
    """Every register of `fragment` from (or to) its element of a row-major matrix; `swap`: stored transposed."""
    r = Var("r")
    row, column = fragment.coords(THREAD, r)
    if swap:
        row, column = column, row
    place = Addr(memory, as_expr(row) * memory.shape[1] + column)
    one = Reg(regs, r, 1)
    body = StoreMem(place, one) if store else LoadMem(one, place)
    return For(r, ZERO, const(fragment.registers), ONE, (body,), "unroll")


def kernel(name: str, params: tuple[Buffer, ...], threads: int, body: tuple[Stmt, ...], **more: Any) -> Kernel:
    role = Role("main", 0, threads // more.pop("lanes", 32), body)
    return Kernel(
        name, params, (1,), (Var("bx"),), threads, (role,), level="thread", launch_threads=threads,
        outputs=more.pop("outputs", (2,)), **more,
    )  # fmt: skip


def warp_probe(atom: Atom) -> Kernel:
    """C = A · Bᵀ by one mma.sync or mfma; A (M, K), B (N, K), C (M, N)."""
    a, b = tensor("A", (atom.m, atom.k), atom.a_dtype), tensor("B", (atom.n, atom.k), atom.b_dtype)
    c = tensor("C", (atom.m, atom.n), atom.c_dtype)
    ra, rb, rc = (
        registers(n, f, d)
        for n, f, d in (("ra", atom.a, atom.a_dtype), ("rb", atom.b, atom.b_dtype), ("rc", atom.c, atom.c_dtype))
    )
    runs = [Reg(x, ZERO, x.shape[0]) for x in (rc, ra, rb)]
    body = (
        *clear(rc),
        move(atom.a, ra, a),
        move(atom.b, rb, b),
        Mma(atom.instruction, runs[0], runs[1], runs[2], runs[0]),
        move(atom.c, rc, c, store=True),
    )
    return kernel("probe", (a, b, c), atom.threads, body, buffers=(ra, rb, rc), lanes=atom.threads)


def sparse_probe(atom: Atom, width: int, selector: int = 0) -> Kernel:
    """C = A · Bᵀ by one mma.sp; A (M, K / 2), metadata E (M, fields) of `width` bits, B (N, K), C (M, N). Lanes that
    `selector` does not choose hold metadata that means nothing."""
    bits = dtype(CONTAINER.get(atom.a_dtype, atom.a_dtype)).bits
    rows = metadata_fragment(bits, width, atom.k * bits // 256)
    operands = (
        ("A", atom.a, atom.a_dtype), ("E", rows, f"int{width}"),
        ("B", atom.b, atom.b_dtype), ("C", atom.c, atom.c_dtype),
    )  # fmt: skip
    memory = [tensor(n, f.shape, d) for n, f, d in operands]
    regs = [registers(f"r{n}", f, d) for n, f, d in operands]
    a, e, b, c = (Reg(x, ZERO, x.shape[0]) for x in regs)
    others = compare("ne", THREAD % 4 // (4 // rows.replication), const(selector))
    spoilt = If(others, clear(regs[1], int("5" * (width // 4), 16)))
    loads = [move(f, r, m) for (_, f, _), r, m in zip(operands[:3], regs, memory, strict=False)]
    body = (
        *clear(regs[3]),
        *loads,
        spoilt,
        MmaSparse(atom.instruction, c, a, b, c, e, selector),
        move(atom.c, regs[3], memory[3], store=True),
    )
    return kernel("probe", tuple(memory), 32, body, buffers=tuple(regs), outputs=(3,))


def wgmma_sparse_probe(atom: Atom, width: int, spans: tuple[int, int], a_major: str, b_major: str) -> Kernel:
    """C = A · Bᵀ by one sparse wgmma; A (M, K / 2) from registers when a_major is "reg", metadata E of `width` bits."""
    rows = wgmma_metadata_fragment(dtype(CONTAINER.get(atom.a_dtype, atom.a_dtype)).bits, width)
    shapes = {"A": (atom.m, atom.stored_k), "B": (atom.n, atom.k)}
    a = tensor("A", shapes["A"][:: -1 if a_major == "mn" else 1], atom.a_dtype)
    b = tensor("B", shapes["B"][:: -1 if b_major == "mn" else 1], atom.b_dtype)
    e, c = tensor("E", rows.shape, f"int{width}"), tensor("C", (atom.m, atom.n), atom.c_dtype)
    rc, re = registers("rc", atom.c, atom.c_dtype), registers("re", rows, f"int{width}")
    tiles = Tiles([rc, Buffer("stage", (1,), a.dtype, "reg"), re], [*clear(rc), move(rows, re, e)])
    half = atom.stored_k * a.dtype.bytes
    first = tiles.operand(atom, a, a_major, spans[0], atom.m, half)
    second = tiles.operand(atom, b, b_major, spans[1], atom.n, 2 * half)
    body, made = tiles.product(atom, rc, first, second, c, Reg(re, ZERO, re.shape[0]))
    return kernel("probe", (a, e, b, c), 128, body, outputs=(3,), **made)


@dataclass
class Tiles:
    """Buffers of a probe and the statements that fill them."""

    buffers: list[Buffer]
    body: list[Stmt]
    offsets: dict[Buffer, int] = field(default_factory=dict)
    at: int = 0

    def operand(self, atom: Atom, source: Buffer, major: str, span: int, extent: int, k_bytes: int = 32) -> Any:
        """The operand `source` where an instruction takes it: registers, or a swizzled tile."""
        if major == "reg":
            ra = registers("ra", atom.a, atom.a_dtype)
            self.buffers.append(ra)
            self.body.append(move(atom.a, ra, source))
            return Reg(ra, ZERO, ra.shape[0])
        item = source.dtype.bytes
        columns = -(-source.shape[1] * item // span) * span // item
        layout = SharedLayout.swizzled((source.shape[0], columns), item, span)
        shared = Buffer(f"{source.name}_s", (layout.size,), source.dtype, "shared")
        self.buffers.append(shared)
        self.offsets[shared] = self.at
        self.at += -(-layout.size * item // 1024) * 1024
        self.body.append(fill(layout, source, shared, self.buffers[1]))
        made = wgmma_descriptor(layout, item, major == "mn", 0, 0, extent, k_bytes=k_bytes)
        return Desc(Addr(shared, const(made.start // item)), made.span, made.leading, made.stride, major)

    def product(
        self, atom: Atom, rc: Buffer, a: Any, b: Any, c: Buffer, e: Reg | None = None
    ) -> tuple[tuple[Stmt, ...], dict[str, Any]]:
        """(the whole body, what else the kernel must be told)."""
        d = Reg(rc, ZERO, rc.shape[0])
        touched = (d, *(x for x in (a, e) if isinstance(x, Reg)))
        body = (
            *self.body,
            Fence("proxy_async", "tiles before wgmma"),
            Sync("block", reason="tiles are filled"),
            WgmmaFence(touched),
            Wgmma(atom.instruction, d, a, b, const(True), e),
            CommitGroup("wgmma"),
            WaitGroup("wgmma", 0, regs=touched),
            move(atom.c, rc, c, store=True),
        )
        return body, {"buffers": tuple(self.buffers), "offsets": self.offsets, "shared_bytes": self.at}


def sparse_operands(atom: Atom, width: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Small integers for the held half of A and for B (N, K), metadata with every choice of places, and the product."""
    rng = np.random.default_rng(seed)
    count, size = (1, 2) if atom.a_dtype == "tfloat32" else (2, 4)
    groups = atom.k // size
    held = rng.integers(0 if atom.a_dtype == "uint8" else -4, 5, (atom.m, groups, count))
    places = np.sort(np.argsort(rng.random((atom.m, groups, size)), axis=-1)[..., :count], axis=-1)
    dense = np.zeros((atom.m, groups, size), np.int64)
    np.put_along_axis(dense, places, held, axis=-1)
    b = rng.integers(0 if atom.b_dtype == "uint8" else -4, 5, (atom.n, atom.k))
    pairs = [(0, 1), (2, 3)] if count == 1 else []
    fields = np.zeros((atom.m, groups), np.uint64)
    for row, group in np.ndindex(*fields.shape):
        low, high = pairs[places[row, group, 0]] if pairs else places[row, group]
        fields[row, group] = low + 4 * high
    words = (fields.reshape(atom.m, -1, width // 4) << np.arange(0, width, 4, dtype=np.uint64)).sum(-1)
    metadata = words.astype(f"uint{width}").view(f"int{width}")
    kinds = [dtype(CONTAINER.get(k, k)).numpy for k in (atom.a_dtype, atom.b_dtype)]
    return held.reshape(atom.m, -1).astype(kinds[0]), metadata, b.astype(kinds[1]), dense.reshape(atom.m, -1) @ b.T


def clear(regs: Buffer, value: int = 0) -> tuple[Stmt, ...]:
    r = Var("z")
    return (For(r, ZERO, const(regs.shape[0]), ONE, (Store(regs, (r,), const(value, regs.dtype)),), "unroll"),)


def wgmma_probe(atom: Atom, span: int, a_major: str, b_major: str) -> Kernel:
    """C = A · Bᵀ by one wgmma; A from registers when a_major is "reg". Tiles are filled through their layouts."""
    a_shape = (atom.m, atom.k) if a_major != "mn" else (atom.k, atom.m)
    b_shape = (atom.n, atom.k) if b_major != "mn" else (atom.k, atom.n)
    a, b = tensor("A", a_shape, atom.a_dtype), tensor("B", b_shape, atom.b_dtype)
    c = tensor("C", (atom.m, atom.n), atom.c_dtype)
    rc = registers("rc", atom.c, atom.c_dtype)
    tiles = Tiles([rc, Buffer("stage", (1,), a.dtype, "reg")], [*clear(rc)])
    first = tiles.operand(atom, a, a_major, span, atom.m)
    second = tiles.operand(atom, b, b_major, span, atom.n)
    body, made = tiles.product(atom, rc, first, second, c)
    return kernel("probe", (a, b, c), 128, body, **made)


def fill(layout: SharedLayout, source: Buffer, shared: Buffer, stage: Buffer) -> Stmt:
    """Every element of the source through `layout.offset`, 128 threads."""
    i = Var("i")
    size = source.shape[0] * source.shape[1]
    linear: Expr = i * 128 + THREAD
    row, column = linear // source.shape[1], linear % source.shape[1]
    inside = linear < size
    body = (
        LoadMem(Reg(stage, ZERO, 1), Addr(source, linear), inside, const(0, source.dtype)),
        StoreMem(Addr(shared, as_expr(layout.offset(row, column))), Reg(stage, ZERO, 1), inside),
    )
    return For(i, ZERO, const(-(-size // 128)), ONE, body, "serial")


def operands(atom: Atom, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Small integers for A (M, K) and B (N, K) in the atom's dtypes, and their exact product."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0 if atom.a_dtype == "uint8" else -4, 5, (atom.m, atom.k))
    b = rng.integers(0 if atom.b_dtype == "uint8" else -4, 5, (atom.n, atom.k))
    kinds = (dtype(CONTAINER.get(k, k)).numpy for k in (atom.a_dtype, atom.b_dtype))
    return *(x.astype(k) for x, k in zip((a, b), kinds, strict=True)), a @ b.T  # type: ignore[return-value]
