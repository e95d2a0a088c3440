"""Each invariant of each level: the sound kernels pass, and every way to break one is found and named."""

from __future__ import annotations

import pytest

from tests.ir.samples import Gemm16, ThreadGemm, at, vector_add
from tileworkbench.errors import InternalError
from tileworkbench.ir.check import check
from tileworkbench.ir.dtype import FLOAT16, FLOAT32, INT32, UINT32
from tileworkbench.ir.expr import Buffer, Load, Special, Var, const
from tileworkbench.ir.instr import (
    Addr,
    Bar,
    BarArrive,
    BulkLoad,
    CopyAsync,
    Elect,
    LdMatrix,
    LoadMem,
    Mma,
    Reg,
    SetRegs,
    Shuffle,
    Sync,
    TmaLoad,
    Wgmma,
)  # fmt: skip
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.node import copied, replace, rewrite, walk
from tileworkbench.ir.planned import Acquire, Commit, Complete, Issue, Release, Role, Wait
from tileworkbench.ir.stmt import ONE, ZERO, Alloc, Break, For, If, Let, Region, Store
from tileworkbench.target import Target

N, X, Y = Var("n"), Var("x"), Var("y")
A = Buffer("A", (64, 64), FLOAT32)
R = Buffer("r", (8,), FLOAT32, "reg")
H = Buffer("h", (8,), FLOAT16, "reg")
S = Buffer("s", (256,), FLOAT16, "shared")
BARS = Buffer("bars", (2,), UINT32, "barrier")


def tile(*body):
    return Kernel("f", (A, N), (1,), (), 128, body)


def thread(*body, **changes):
    made = Kernel(
        "f", (A, N), (1,), (), 128, body, level="thread", launch_threads=128, buffers=(R, H, S, BARS),
        offsets={S: 0, BARS: 512}, shared_bytes=528,
    )  # fmt: skip
    return made.with_(**changes)


def breaks(kernel, message, target=None):
    with pytest.raises(InternalError, match=message) as caught:
        check(kernel, target=target)
    return caught.value


@pytest.mark.parametrize("target", [None, Target.of("sm_90a")])
def test_sound_kernels_pass(target):
    for kernel in (Gemm16().tile(), Gemm16(Var("M")).planned(), ThreadGemm().kernel(), vector_add(), thread()):
        assert check(kernel, target=target) is kernel


# --- names ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((Store(A, (X, ZERO), const(1.0)),), "variable x has no value"),
        ((If(N < 3, (Let(X, N),)), Store(A, (X, ZERO), const(1.0))), "variable x has no value"),
        ((For(X, ZERO, N, ONE, (For(X, ZERO, N, ONE, ()),)),), "bound twice"),
        ((Store(A, (ZERO,), const(1.0)),), "2 dimensions, not 1"),
        ((Store(S, (ZERO,), const(1.0)),), "buffer s does not exist"),
        ((If(N < 3, (Store(A, (ZERO, ZERO), Load(S, (ZERO,))),)),), "buffer s does not exist"),
        ((Break(),), "no loop is open"),
        ((Sync("block"),), "instruction at tile level"),
        ((Role("main", 0, 4, ()),), "planned statement at tile level"),
    ],
)
def test_names_and_levels(body, message):
    breaks(tile(*body), message)


def test_the_statement_and_its_place_are_named():
    found = breaks(tile(Store(A, (X, ZERO), const(1.0), loc=at(7))), "A\\[x, 0\\] = 1.0")
    assert found.loc == at(7) and "bound" in found.rule


def test_an_operation_stands_at_one_place():
    g = Gemm16()
    breaks(g.tile().with_(body=(*g.allocs, g.clear, g.clear)), "two places")
    check(g.tile().with_(body=(*g.allocs, g.clear, copied(g.clear))))


def test_regions_have_the_buffers_rank():
    g = Gemm16()
    short = replace(g.clear, dst=Region(g.C_l, (ZERO,), (128,)))
    breaks(g.tile().with_(body=(*g.allocs, short)), "1 starts")


def test_a_buffer_is_allocated_before_its_use():
    g = Gemm16()
    breaks(g.tile().with_(body=(g.clear, *g.allocs)), "C_local does not exist")


# --- planned ----------------------------------------------------------------------------------------------------------
def changed(kernel, kind, fn):
    """The kernel with `fn` applied to the statements of one class."""
    return kernel.with_(body=tuple(rewrite(s, lambda n: fn(n) if isinstance(n, kind) else n) for s in kernel.body))


@pytest.mark.parametrize(
    ("kind", "fn", "message"),
    [
        (Commit, lambda s: None, "acquired and committed differ over one trip"),
        (Release, lambda s: None, "waited for and released differ over one trip"),
        (Acquire, lambda s: None, "filled outside Acquire"),
        (Wait, lambda s: None, "has no open version"),
        (Release, lambda s: If(N < 3, (s,)), "branches leave channel ring"),
        (Wait, lambda s: (s, s), "differ over one trip"),
        (Complete, lambda s: None, "issued and never completed"),
        (Wait, lambda s: Acquire(s.channel), "is no producer"),
    ],
)
def test_channels_are_even_on_every_path(kind, fn, message):
    kernel = changed(Gemm16().planned(), kind, fn)
    breaks(kernel.with_(params=(*kernel.params, N)), message)


def test_a_version_left_open_at_the_end():
    k = Gemm16().planned()
    ring = k.channels[0]
    breaks(
        changed(k, Role, lambda r: replace(r, body=(*r.body, Acquire(ring))) if r.name == "load" else r), "at the end"
    )


def test_more_versions_than_the_ring_has():
    k = Gemm16().planned()
    ring = k.channels[0]
    many = tuple(Acquire(ring) for _ in range(4))
    breaks(changed(k, Role, lambda r: replace(r, body=many) if r.name == "load" else r), "4 versions of channel ring")


def test_copies_of_a_ring_stay_between_acquire_and_commit():
    def swap(loop):
        acquire, a, b, commit = loop.body if len(loop.body) == 4 else (None,) * 4
        return replace(loop, body=(a, acquire, b, commit)) if isinstance(acquire, Acquire) else loop

    breaks(changed(Gemm16().planned(), For, swap), "filled outside Acquire")


def test_reads_of_a_ring_stay_between_wait_and_release():
    def late(loop):
        return (
            replace(loop, body=(loop.body[0], loop.body[3], *loop.body[1:3]))
            if isinstance(loop.body[0], Wait)
            else loop
        )

    breaks(changed(Gemm16().planned(), For, late), "used outside Wait")


def test_group_channels_may_commit_empty_groups():
    g = Gemm16()
    k = g.planned()
    ring = replace(k.channels[0], producer="main", consumers=("main",), completion="group")
    body = (
        For(g.k, ZERO, const(8), ONE, (
            Wait(ring), If(g.k < 6, (Acquire(ring),)), Commit(ring), Release(ring),
        )),
    )  # fmt: skip
    main = Role("main", 0, 4, body)
    check(k.with_(body=(*g.allocs, main), channels=(ring,), launch_threads=128))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first_warp": 3}, "belongs to roles|warp 3"),
        ({"first_warp": 8}, "the launch has 8 warps|warps 8"),
        ({"name": "compute"}, "two roles are named|is no producer"),
        ({"name": "other"}, "ends at 'load'"),
    ],
)
def test_roles(changes, message):
    k = Gemm16().planned()
    breaks(changed(k, Role, lambda r: replace(r, **changes) if r.name == "load" else r), message)


def test_tiles_in_use_have_layouts():
    k = Gemm16().planned()
    some = {b: v for b, v in k.layouts.items() if b.name != "C_local"}
    breaks(k.with_(layouts=some), "C_local has no layout")
    check(k.with_(layouts={}))


def test_rings_have_a_version_for_each_place():
    k = Gemm16().planned()
    breaks(k.with_(versions=dict.fromkeys(k.versions, 2)), "has 2 versions, channel ring 3")


# --- thread -----------------------------------------------------------------------------------------------------------
THREAD = Special("thread")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((Alloc(S),), "a tile at thread level"),
        ((Acquire(Gemm16().planned().channels[0]),), "tile-level statement"),
        ((Store(A, (ZERO, ZERO), const(1.0)),), "memory is reached by instructions|global memory read or written"),
        ((Store(R, (THREAD,), const(1.0)),), "indexed by `thread`"),
        ((For(X, ZERO, N, ONE, (Store(R, (X,), const(1.0)),)),), "indexed by `x`"),
        ((For(X, ZERO, const(9), ONE, (Store(R, (X,), const(1.0)),), "unroll"),), "registers 0 to 8 of r"),
        ((For(X, ZERO, N, ONE, (), "unroll"),), "bounds of a loop of kind unroll"),
        ((LoadMem(Reg(R, const(6), 4), Addr(A, ZERO)),), "registers 6 to 9"),
        ((LoadMem(Reg(R, ZERO, 3), Addr(A, ZERO)),), "one access of 12 bytes"),
        ((If(THREAD < 3, (Sync("block"),)),), "only a thread surely"),
        ((If(Special("warp") < 3, (Sync("block"),)),), "only a warp surely"),
        ((If(THREAD < 3, (Shuffle(Reg(R, ZERO), Reg(R, ONE), "xor", ONE),)),), "only a thread surely"),
        ((Elect("warp", (Sync("warp"),)),), "only a thread surely"),
        ((For(X, ZERO, THREAD, ONE, (Sync("block"),)),), "only a thread surely"),
        ((For(X, ZERO, N, ONE, (If(THREAD < X, (Break(),)), Sync("block"))),), "only a thread surely"),
        ((Sync("block", id=16),), "barrier id 16"),
        ((Sync("block", id=0, threads=96),), "96 threads meet"),
        ((CopyAsync(Addr(S, ZERO), Addr(A, ZERO), 12),), "cp.async of 12"),
        ((LdMatrix(Reg(H, ZERO, 4), Addr(S, ZERO), 4),), "4 matrices in 8 bytes"),
        ((BarArrive(Bar(BARS, const(2))),), "barrier 2 of bars"),
        ((BarArrive(Bar(S, ZERO)),), "no barrier"),
        ((BarArrive(Bar(BARS, ZERO), 64),), "expects 64 bytes and is brought 0"),
        ((BulkLoad(Addr(S, ZERO), Addr(A, ZERO), 64, Bar(BARS, ZERO)),), "expects 0 bytes and is brought 64"),
        ((SetRegs(40, "inc"),), "40 registers"),
        ((Mma("row", Reg(R, ZERO, 4), Reg(H, ZERO, 8), Reg(H, const(4), 8), Reg(R, ZERO, 4)),), "registers 4 to 11"),
    ],
)
def test_thread_statements(body, message):
    breaks(thread(*body), message)


def test_bytes_are_counted_over_loops_and_branches():
    expect, bring = BarArrive(Bar(BARS, ZERO), 64), BulkLoad(Addr(S, ZERO), Addr(A, ZERO), 32, Bar(BARS, ZERO))
    check(thread(Elect("block", (expect, For(X, ZERO, const(2), ONE, (bring,))))))
    breaks(
        thread(Elect("block", (expect, For(X, ZERO, const(3), ONE, (bring,))))), "expects 64 bytes and is brought 96"
    )
    breaks(thread(For(X, ZERO, N, ONE, (expect, bring))), "expects 64 bytes a trip and is brought 32")
    check(thread(For(X, ZERO, N, ONE, (expect, bring, bring))))


def test_the_bytes_of_the_gemm_are_right_only_with_both_tiles():
    breaks(ThreadGemm(bytes_=16384).kernel(), "full expects 131072 bytes and is brought 262144")
    lost = changed(ThreadGemm().kernel(), TmaLoad, lambda s: None if s.map == "B_map" else s)
    breaks(lost, "expects 262144 bytes and is brought 131072")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offsets": {S: 0}}, "bars has no offset"),
        ({"offsets": {S: 16, BARS: 512}}, "bars and s overlap"),
        ({"offsets": {S: 8, BARS: 520}}, "s is at 8"),
        ({"shared_bytes": 520}, "takes bytes 512 to 528"),
        ({"buffers": (R, H, S)}, "is no barrier of the kernel|does not exist"),
    ],
)
def test_storage(changes, message):
    breaks(thread(BarArrive(Bar(BARS, ZERO))).with_(**changes), message)


def test_swizzled_tiles_lie_at_whole_patterns():
    t = ThreadGemm()
    k = t.kernel()
    moved = {b: o + (512 if b is t.A_s else 1024) for b, o in k.offsets.items()}
    breaks(k.with_(offsets=moved, shared_bytes=k.shared_bytes + 1024), "multiple of 1024")
    breaks(k.with_(maps=k.maps[:1]), "tensor map 'B_map'")


def test_registers_handed_over_fit_the_file():
    k = changed(ThreadGemm().kernel(), Role, lambda r: replace(r, registers=256, body=r.body[1:]))
    check(k)
    wide = k.with_(launch_threads=512, body=(*k.body, *(Role(f"w{i}", 8 + 4 * i, 4, (), 256) for i in range(2))))
    breaks(wide, "ask for 131072 registers")
    breaks(changed(ThreadGemm().kernel(), SetRegs, lambda s: replace(s, count=32)), "32 registers")


def test_warpgroups_are_whole():
    t = ThreadGemm()
    half = changed(t.kernel(), Role, lambda r: replace(r, warps=2) if r.name == "compute" else r)
    breaks(half, "2 warps from 0 on")


def test_meetings_of_the_block_are_not_in_one_role():
    t = ThreadGemm()
    k = t.kernel()
    breaks(changed(k, SetRegs, lambda s: (s, Sync("block"))), "only a role surely")
    alone = Kernel(
        "f", (A,), (1,), (), 128, (Role("main", 0, 4, (Sync("block"),)),), level="thread", launch_threads=128
    )
    check(alone)


def test_instructions_that_the_target_has_not():
    k = ThreadGemm().kernel()
    assert "mbarrier" in breaks(k, "sm_80 has no mbarrier", Target.of("sm_80")).found
    small = thread(buffers=(R,), offsets={}, shared_bytes=200 * 1024)
    breaks(small, "204800 bytes of shared memory", Target.of("sm_80"))


def test_samples_hold_what_the_tests_break():
    assert any(isinstance(n, Wgmma) for n in walk(ThreadGemm().kernel().body))
    assert any(isinstance(n, Issue) for n in walk(Gemm16().planned().body))
    assert INT32.bits == 32 and Y is not X
