"""For each instruction row, statements that exercise its forms on a target. `Frame` gives them memory and registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tileworkbench.ir import instr as I
from tileworkbench.ir.dtype import DTYPES, FLOAT16, FLOAT32, INT32
from tileworkbench.ir.expr import Call, Cast, Load, Special, const
from tileworkbench.ir.stmt import Stmt, Store
from tileworkbench.layout.mfma import mfma_atoms
from tileworkbench.layout.mma import mma_atoms
from tileworkbench.layout.mma_sp import mma_sp_atoms, selectors
from tileworkbench.layout.wgmma import wgmma_atoms
from tileworkbench.target import Target

from .samples import LANE, THREAD, WARP, Frame, addr, run

BF16, F64, I64, U8, U64 = (DTYPES[n] for n in ("bfloat16", "float64", "int64", "uint8", "uint64"))
UINT32 = DTYPES["uint32"]
Rows = list[Stmt]
ROWS: dict[type, Callable[[Frame, Target], Rows]] = {}


def row(kind: type) -> Callable[[Any], Any]:
    def take(fn: Any) -> Any:
        ROWS[kind] = fn
        return fn

    return take


@row(I.LoadMem)
def loads(f: Frame, t: Target) -> Rows:
    out: Rows = []
    for dtype, count in (
        (U8, 1),
        (U8, 2),
        (FLOAT16, 1),
        (FLOAT16, 2),
        (FLOAT16, 4),
        (FLOAT16, 8),
        (FLOAT32, 4),
        (F64, 2),
    ):
        g, s = f.tensor(dtype), f.shared(512, dtype)
        for cache in ("", "cg", "cs", "nc"):
            out.append(I.LoadMem(run(f.reg(count, dtype)), addr(g, THREAD * count), cache=cache))
        guarded, filled = f.reg(count, dtype), f.reg(count, dtype)
        out.append(I.LoadMem(run(guarded), addr(s, THREAD * count % 256), pred=THREAD < 7))
        out.append(I.LoadMem(run(filled), addr(g, THREAD * count), pred=THREAD < 9, fill=const(1, dtype)))
    return out


@row(I.StoreMem)
def stores(f: Frame, t: Target) -> Rows:
    out: Rows = []
    for dtype, count in (
        (U8, 1),
        (U8, 2),
        (FLOAT16, 1),
        (FLOAT16, 2),
        (FLOAT16, 4),
        (FLOAT16, 8),
        (FLOAT32, 4),
        (F64, 2),
    ):
        g, s, r = f.tensor(dtype), f.shared(512, dtype), f.reg(count, dtype)
        out.append(I.LoadMem(run(r), addr(g, THREAD * count)))
        for cache in ("", "cg", "cs"):
            out.append(I.StoreMem(addr(g, THREAD * count + 512), run(r), cache=cache))
        out.append(I.StoreMem(addr(s, THREAD * count % 256), run(r), pred=THREAD < 9))
    return out


@row(I.AtomicMem)
def atomics(f: Frame, t: Target) -> Rows:
    out: Rows = []
    for name in ("int32", "uint32", "int64", "uint64", "float32", "float64", "float16", "bfloat16"):
        dtype = DTYPES[name]
        ops = (
            ("add", "max", "min", "exch")
            if dtype.is_float
            else ("add", "max", "min", "and", "or", "xor", "exch", "cas")
        )
        for space in (f.tensor(dtype), f.shared(512, dtype)):
            for op in ops:
                r, old = f.reg(2, dtype), f.reg(1, dtype)
                out.append(I.AtomicMem(op, addr(space, THREAD), run(r, 0, 2 if op == "cas" else 1)))
                out.append(
                    I.AtomicMem(op, addr(space, THREAD), run(r, 0, 1), run(old), pred=THREAD < 3, order="acq_rel")
                )
    for dtype, count in ((FLOAT16, 2), (BF16, 2), (FLOAT32, 2), (FLOAT32, 4)):
        r, old = f.reg(count, dtype), f.reg(count, dtype)
        g = f.tensor(dtype)
        out.append(I.AtomicMem("add", addr(g, THREAD * count), run(r)))
        out.append(I.AtomicMem("add", addr(g, THREAD * count), run(r), run(old), scope_of="sys", order="release"))
    return out


def matrices(kind: Any) -> Callable[[Frame, Target], Rows]:
    def make(f: Frame, t: Target) -> Rows:
        s = f.shared(4096, FLOAT16)
        out: Rows = []
        for num in (1, 2, 4):
            for turned in (False, True):
                r, at = f.reg(2 * num, FLOAT16), addr(s, LANE * 8 + num * 256)
                out.append(kind(run(r), at, num, turned) if kind is I.LdMatrix else kind(at, run(r), num, turned))
        return out

    return make


ROWS[I.LdMatrix], ROWS[I.StMatrix] = matrices(I.LdMatrix), matrices(I.StMatrix)


@row(I.Shuffle)
def shuffles(f: Frame, t: Target) -> Rows:
    out: Rows = []
    for dtype, count in ((FLOAT32, 1), (FLOAT16, 1), (FLOAT16, 2), (INT32, 4), (F64, 1), (U8, 1), (I64, 1)):
        for kind in ("idx", "xor", "up", "down"):
            r = f.reg(count, dtype)
            out.append(I.LoadMem(run(r), addr(f.tensor(dtype), THREAD * count)))
            out.append(I.Shuffle(run(r), run(r), kind, const(3), 16 if kind == "xor" else 32))
    return out


@row(I.Vote)
def votes(f: Frame, t: Target) -> Rows:
    # A wave of 64 lanes has a ballot of 64 bits.
    wide = U64 if t.arch.warp_size == 64 else UINT32
    regs = {"ballot": f.reg(1, wide), "any": f.reg(1, INT32), "all": f.reg(1, INT32)}
    return [I.Vote(run(r), kind, THREAD % 3 < 2) for kind, r in regs.items()]


@row(I.Match)
def matches(f: Frame, t: Target) -> Rows:
    out: Rows = []
    for dtype in (FLOAT32, INT32, F64, I64):
        r, d = f.reg(1, dtype), f.reg(1, UINT32)
        out.append(I.LoadMem(run(r), addr(f.tensor(dtype), THREAD)))
        out += [I.Match(run(d), run(r), kind) for kind in ("any", "all")]
    return out


def clear(f: Frame, b: Any) -> I.LoadMem:
    """Whatever fills the register with something the compiler does not know."""
    return I.LoadMem(run(b, 0, 1), addr(f.tensor(b.dtype), THREAD))


@row(I.Mma)
def mmas(f: Frame, t: Target) -> Rows:
    out: Rows = []
    for atom in mma_atoms() if t.dialect == "cuda" else mfma_atoms():
        if not atom.supports(t.name):
            continue
        a, b = (f.reg(x.registers, DTYPES[d]) for x, d in ((atom.a, atom.a_dtype), (atom.b, atom.b_dtype)))
        d = f.reg(atom.c.registers, DTYPES[atom.c_dtype])
        out += [clear(f, a), clear(f, b), clear(f, d), I.Mma(atom.instruction, run(d), run(a), run(b), run(d))]
    return out


@row(I.MmaSparse)
def sparse_mmas(f: Frame, t: Target) -> Rows:
    out: Rows = []
    for atom in [x for x in mma_sp_atoms() if x.supports(t.name)] or mma_sp_atoms():
        a, b = (f.reg(x.registers, DTYPES[d]) for x, d in ((atom.a, atom.a_dtype), (atom.b, atom.b_dtype)))
        d, e = f.reg(atom.c.registers, DTYPES[atom.c_dtype]), f.reg(2, DTYPES["int16"])
        products = [
            I.MmaSparse(atom.instruction, run(d), run(a), run(b), run(d), run(e), selector)
            for selector in range(selectors(atom.metadata))
        ]
        out += [clear(f, a), clear(f, b), clear(f, d), clear(f, e), *products]
    return out


WGMMA_TYPES = (("float16", "float16", "float32"), ("float16", "float16", "float16"),
               ("bfloat16", "bfloat16", "float32"),
               ("tfloat32", "tfloat32", "float32"), ("float8_e4m3fn", "float8_e5m2", "float32"),
               ("int8", "uint8", "int32"))  # fmt: skip


@row(I.Wgmma)
def wgmmas(f: Frame, t: Target) -> Rows:
    s = f.shared(32768, U8)
    out: Rows = []
    b = I.Desc(addr(s, 4096), 128, 16, 1024)
    for names in WGMMA_TYPES:
        atom = next(x for x in wgmma_atoms(*names) if x.n == 64)
        for swizzle in (32, 64, 128):
            d = f.reg(atom.c.registers, DTYPES[atom.c_dtype])
            desc = I.Desc(addr(s, 1024), swizzle, 16, 1024, "mn" if "float16" in names[0] and swizzle == 64 else "k")
            out += [I.WgmmaFence((run(d),)), I.Wgmma(atom.instruction, run(d), desc, b, const(True)),
                    I.CommitGroup("wgmma"),
                    I.WaitGroup("wgmma", 0, regs=(run(d),)), f.keep(d)]  # fmt: skip
        a, d = f.reg(atom.a.registers, DTYPES[atom.a_dtype]), f.reg(atom.c.registers, DTYPES[atom.c_dtype])
        out += [clear(f, a), I.WgmmaFence((run(d), run(a))), I.Wgmma(atom.instruction, run(d), run(a), b, THREAD < 0),
                I.CommitGroup("wgmma"), I.WaitGroup("wgmma", 0, regs=(run(d),)), f.keep(d)]  # fmt: skip
    return out


@row(I.WgmmaFence)
def wgmma_fence(f: Frame, t: Target) -> Rows:
    return [I.WgmmaFence((run(f.reg(8)), run(f.reg(8, FLOAT16)), run(f.reg(4, INT32))))]


@row(I.CopyAsync)
def copies(f: Frame, t: Target) -> Rows:
    g, s = f.tensor(), f.shared(1024)
    out: Rows = [I.CopyAsync(addr(s, THREAD * 4), addr(g, THREAD * 4), n) for n in (4, 8, 16)]
    out += [I.CopyAsync(addr(s, THREAD * 4), addr(g, THREAD * 4), n, valid=THREAD % n) for n in (4, 8, 16)]
    return [*out, I.CommitGroup("copy"), I.WaitGroup("copy", 1), I.WaitGroup("copy", 0)]


@row(I.TmaLoad)
def tma_loads(f: Frame, t: Target) -> Rows:
    out: Rows = []
    for rank in range(1, 6):
        s, bar, box = f.shared(1024, FLOAT16), f.barrier(), (8, 4, 2, 2, 1)[:rank]
        coords = tuple(WARP + i for i in range(rank))
        m = f.map(box)
        out.append(I.TmaLoad(addr(s), m, coords, bar, 256))
        out.append(I.TmaLoad(addr(s), m, coords, bar, 256, hint="evict_last"))
        if t.has("multicast"):
            out.append(I.TmaLoad(addr(s), m, coords, bar, 256, multicast=const(3), hint="evict_first"))
    return out


@row(I.TmaStore)
def tma_stores(f: Frame, t: Target) -> Rows:
    out: Rows = []
    for rank in range(1, 6):
        s, box = f.shared(1024, FLOAT16), (8, 4, 2, 2, 1)[:rank]
        m, coords = f.map(box), tuple(WARP + i for i in range(rank))
        out += [I.TmaStore(m, coords, addr(s), reduce) for reduce in ("", "add", "min", "max")]
        out.append(I.TmaStore(m, coords, addr(s), hint="evict_first"))
    return [*out, I.CommitGroup("bulk"), I.WaitGroup("bulk", 0, True), I.WaitGroup("bulk", 1)]


@row(I.BulkLoad)
def bulk_loads(f: Frame, t: Target) -> Rows:
    bar = f.barrier()
    return [I.BulkLoad(addr(f.shared(1024)), addr(f.tensor(), 64), 4096, bar),
            I.BulkLoad(addr(f.shared(1024)), addr(f.tensor(), WARP * 64), WARP * 16 + 16, bar)]  # fmt: skip


@row(I.BulkStore)
def bulk_stores(f: Frame, t: Target) -> Rows:
    out: Rows = []
    for name, ops in (("float32", ("", "add")), ("float64", ("add",)), ("float16", ("add", "min", "max")),
                      ("bfloat16", ("add", "min", "max")), ("int32", ("add", "min", "max")), ("uint32", ("add", "min")),
                      ("int64", ("add", "max")), ("uint64", ("add", "max"))):  # fmt: skip
        g, s = f.tensor(DTYPES[name]), f.shared(256, DTYPES[name])
        out += [I.BulkStore(addr(g, WARP * 16), addr(s, 32), 64, op) for op in ops]
    return [*out, I.CommitGroup("bulk"), I.WaitGroup("bulk", 0)]


@row(I.LdsDirect)
def lds_direct(f: Frame, t: Target) -> Rows:
    sizes = (4, 16) if t.name == "gfx950" else (4,)
    return [I.LdsDirect(addr(f.shared(1024), WARP * 64), addr(f.tensor(), THREAD * 4), n) for n in sizes]


@row(I.CommitGroup)
def commits(f: Frame, t: Target) -> Rows:
    engines = [e for e, need in (("copy", "cp_async"), ("bulk", "bulk_copy"), ("wgmma", "wgmma")) if t.has(need)]
    return [I.CommitGroup(e) for e in engines or (["copy"] if t.dialect == "hip" else [])]


@row(I.WaitGroup)
def waits(f: Frame, t: Target) -> Rows:
    engines = [e for e, need in (("copy", "cp_async"), ("bulk", "bulk_copy"), ("wgmma", "wgmma")) if t.has(need)]
    return [I.WaitGroup(e, n) for e in engines or (["copy"] if t.dialect == "hip" else []) for n in (0, 2)]


@row(I.BarInit)
def bar_init(f: Frame, t: Target) -> Rows:
    return [I.BarInit(f.barrier(), 3)]


@row(I.BarArrive)
def bar_arrive(f: Frame, t: Target) -> Rows:
    bar = f.barrier()
    out: Rows = [I.BarArrive(bar), I.BarArrive(bar, 128, reason="first"), I.BarArrive(bar, THREAD * 4)]
    if t.has("cluster"):
        out += [I.BarArrive(bar, remote=THREAD % 2), I.BarArrive(bar, 64, remote=const(0))]
    return out


@row(I.BarExpect)
def bar_expect(f: Frame, t: Target) -> Rows:
    bar = f.barrier()
    return [I.BarExpect(bar, 128, reason="first"), I.BarExpect(bar, THREAD * 4)]


@row(I.BarWait)
def bar_wait(f: Frame, t: Target) -> Rows:
    bar = f.barrier()
    return [I.BarWait(bar, const(0)), I.BarWait(bar, THREAD % 2, const(5), "second")]


@row(I.CopyAsyncArrive)
def copy_arrive(f: Frame, t: Target) -> Rows:
    return [I.CopyAsyncArrive(f.barrier()), I.CopyAsyncArrive(f.barrier(), False)]


@row(I.Sync)
def syncs(f: Frame, t: Target) -> Rows:
    out: Rows = [I.Sync("warp"), I.Sync("block"), I.Sync("block", id=0, threads=128, reason="exchange"), I.Sync("role")]
    if t.dialect == "cuda":
        out += [
            I.Sync("grid"),
            I.Sync("role", "arrive", 1, 128),
            I.Sync("role", "wait", 2, 128),
            I.Sync("role", id=15, threads=64),
        ]
    if t.has("cluster"):
        out += [I.Sync("cluster"), I.Sync("cluster", "arrive"), I.Sync("cluster", "wait")]
    return out


@row(I.Fence)
def fences(f: Frame, t: Target) -> Rows:
    kinds = ["cta", "gpu", "sys"]
    kinds += ["proxy_async", "mbarrier_init", "tensormap"] if t.has("proxy_fence") and t.has("tma") else []
    return [I.Fence(kind, "because") for kind in kinds]


@row(I.SetRegs)
def set_regs(f: Frame, t: Target) -> Rows:
    return [I.SetRegs(40, "dec"), I.SetRegs(232, "inc")]


@row(I.Elect)
def elects(f: Frame, t: Target) -> Rows:
    r = f.reg(1, INT32)
    return [I.Elect(who, (Store(r, (const(0),), THREAD),)) for who in ("warp", "role", "block")]


@row(I.Prefetch)
def prefetches(f: Frame, t: Target) -> Rows:
    out: Rows = [I.Prefetch(addr(f.tensor(), THREAD)), I.Prefetch(addr(f.tensor(), THREAD), "L1")]
    return [*out, I.Prefetch(f.map((64, 8)))] if t.has("tma") else out


@row(I.SchedHint)
def hints(f: Frame, t: Target) -> Rows:
    return [I.SchedHint("priority", 1), I.SchedHint("group", 8), I.SchedHint("iglp", 1)]


@row(I.GridDep)
def grid_dep(f: Frame, t: Target) -> Rows:
    return [I.GridDep("wait"), I.GridDep("launch")]


@row(I.Trap)
def trap(f: Frame, t: Target) -> Rows:
    return [I.Trap()] if t.dialect == "hip" else [I.Trap(), I.Trap("out of range")]


@row(I.Stamp)
def stamp(f: Frame, t: Target) -> Rows:
    return [I.Stamp(3, "load", "producer")]


@row(I.CallExtern)
def call_extern(f: Frame, t: Target) -> Rows:
    return [I.CallExtern("(void)sizeof", (const(1),))]


@row(I.ForeignKernel)
def foreign_kernel(f: Frame, t: Target) -> Rows:
    return [I.ForeignKernel("own", 'extern "C" __global__ void own() {}', ())]


CAST_TYPES = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
              "float64", "float8_e4m3fn", "float8_e5m2",
               "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")  # fmt: skip


def casts(f: Frame) -> Rows:
    """Every type to every other, with and without saturation."""
    out: Rows = []
    for source in CAST_TYPES:
        r = f.reg(1, DTYPES[source])
        out.append(I.LoadMem(run(r), addr(f.tensor(r.dtype), THREAD)))
        for to in CAST_TYPES:
            for saturate in (False, True):
                if to == source or (saturate and not to.startswith(("float8", "int"))):
                    continue
                d = f.reg(1, DTYPES[to])
                out.append(Store(d, (const(0),), Cast(Load(r, (const(0),)), dtype=d.dtype, saturate=saturate)))
                out.append(f.keep(d))
    return out


def calls(f: Frame, table: dict[str, tuple[str, str]]) -> Rows:
    """Every function of a dialect's table, on every type it has text for."""
    out: Rows = []
    for dtype, only in ((FLOAT32, None), (F64, None), (FLOAT16, HALVES)):
        r = f.reg(3, dtype)
        out += [I.LoadMem(run(r, i, 1), addr(f.tensor(dtype), THREAD)) for i in range(3)]
        for fn, texts in table.items():
            text = texts[1 if dtype is F64 else 0]
            if not text or fn in INTEGER or (only and fn not in only):
                continue
            args = tuple(Load(r, (const(i),)) for i in range(3) if f"{{{i}}}" in text)
            if fn == "ldexp":
                args = (args[0], const(3))
            truth = fn.startswith("is")
            d = f.reg(1, DTYPES["bool"] if truth else dtype)
            out.append(Store(d, (const(0),), Call(fn, args, dtype=d.dtype)))
    for name in ("int8", "uint16", "int32", "uint64"):
        r = f.reg(1, DTYPES[name])
        out.append(I.LoadMem(run(r), addr(f.tensor(r.dtype), THREAD)))
        out += [Store(f.reg(1, INT32), (const(0),), Call(fn, (Load(r, (const(0),)),), dtype=INT32)) for fn in INTEGER]
    return out


HALVES = ("exp2", "fma", "isnan", "ldexp", "max")  # through float all alike
INTEGER = ("popcount", "clz", "ffs")
SPECIALS = ("thread", "role_thread", "lane", "warp", "grid_x", "grid_y", "grid_z")


def specials(f: Frame) -> Rows:
    r = f.reg(len(SPECIALS), INT32)
    return [Store(r, (const(i),), Special(name)) for i, name in enumerate(SPECIALS)]
