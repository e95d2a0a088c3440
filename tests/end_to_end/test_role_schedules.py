"""T.annotate_ws_schedule: a straight kernel run by the roles, pipelines and orders that its text gives."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import LanguageError, TargetError
from tileworkbench.ir.instr import SetRegs, TmaLoad
from tileworkbench.pipeline import run_passes
from tileworkbench.target import Target

from .harness import everywhere, instructions, integers

HOPPER = ("sm_90a",)
acquire, commit = T.WSSync.producer_acquire, T.WSSync.producer_commit
wait, release = T.WSSync.consumer_wait, T.WSSync.consumer_release
ROLES = [
    T.WSRole("Producer", warps_lo=0, warps_hi=1, max_nreg=40),
    T.WSRole("Consumer", warps_lo=4, warps_hi=8, max_nreg=224),
]


def bodies(stage=0):
    return {
        "Producer": [acquire("buf"), "copy_in", commit("buf")],
        "Consumer": [wait("buf", stage), "copy_frag", release("buf", stage), "copy_out"],
    }


def through_a_ring(depth=2, edit=None, roles=None, scopes=None, warps=8, loop=T.Pipelined, variant=""):
    """Tiles of A go through a ring of `depth` places into B."""
    text = bodies()
    if edit is not None:
        edit(text)

    @T.prim_func
    def kernel(A: T.Tensor((256, 64), "float16"), B: T.Tensor((256, 64), "float16")):
        with T.Kernel(1, threads=128):
            held = T.alloc_shared((64, 64), "float16")
            moved = T.alloc_fragment((64, 64), "float16")
            if variant == "placed":
                T.annotate_layout({held: T.Layout((64, 64), lambda i, j: i * 64 + j)})
            pipes = [T.WSPipeline("buf", [held], depth)] * (2 if variant == "twice" else 1)
            made = scopes or [
                T.WSScope("loop_k", text),
                T.WSScope(T.WSScope.ROOT, {"Producer": ["loop_k"], "Consumer": ["loop_k"]}),
            ]
            T.annotate_ws_schedule(T.WSSchedule(warps, roles or ROLES, pipes, made))
            for i in loop(4, annotations={T.WSID: "loop_k"}):
                if variant == "guarded":
                    if i < 3:
                        T.copy(A[i * 64, 0], held, annotations={T.WSID: "copy_in"})
                elif variant == "plain":
                    T.copy(A[i * 64, 0], held, disable_tma=True, annotations={T.WSID: "copy_in"})
                elif variant == "padded":
                    T.fill(held, 5, annotations={T.WSID: "pad"})
                    T.copy(A[i * 64, 0], held, annotations={T.WSID: "copy_in"})
                elif variant == "scaled":
                    T.copy(A[i * 64, 0], held, annotations={T.WSID: "copy_in"})
                    for r, c in T.Parallel(64, 64, annotations={T.WSID: "scale"}):
                        held[r, c] = held[r, c] * T.float16(2)
                elif variant == "async":
                    T.async_copy(A[i * 64, 0], held, annotations={T.WSID: "copy_in"})
                else:
                    T.copy(A[i * 64, 0], held, annotations={T.WSID: "copy_in"})
                if variant == "viewed":
                    T.copy(T.view(held, (64, 64)), moved, annotations={T.WSID: "copy_frag"})
                elif variant == "unnamed":
                    T.copy(held, moved)
                else:
                    T.copy(held, moved, annotations={T.WSID: "copy_frag"})
                T.copy(moved, B[i * 64, 0], annotations={T.WSID: "copy_out"})
                if variant == "store":
                    B[0, 0] = T.float16(0.0)

    return kernel


@pytest.mark.parametrize(("depth", "variant"), [(1, ""), (2, ""), (3, ""), (2, "plain")])
def test_two_roles_hand_tiles_over(depth, variant):
    a = integers(depth, (256, 64), "float16")
    made = everywhere(through_a_ring(depth, variant=variant), [a], a, HOPPER)["sm_90a"]
    assert bool(instructions(made, TmaLoad)) == (variant == "")
    assert [(s.count, s.direction) for s in instructions(made, SetRegs)] == [(40, "dec"), (224, "inc")]
    text = emit(made, Target.of("sm_90a")).text
    assert "__launch_bounds__(256, 1)" in text and "warp == 0" in text


def test_stores_before_a_copy_keep_it_from_the_engine():
    a = integers(5, (256, 64), "float16")
    kernel = through_a_ring(edit=changed("Producer", acquire("buf"), "pad", "copy_in", commit("buf")), variant="padded")
    made = everywhere(kernel, [a], a, HOPPER)["sm_90a"]
    assert not instructions(made, TmaLoad)


def test_stages_that_agree_cancel():
    a = integers(7, (256, 64), "float16")
    kernel = through_a_ring(edit=lambda text: text.update(bodies(stage=1)))
    everywhere(kernel, [a], a, HOPPER)


def test_a_guarded_copy_keeps_the_ring_turning():
    a = integers(8, (256, 64), "float16")
    kernel = through_a_ring(depth=3, variant="guarded")
    want = a.copy()
    want[192:] = a[:64]  # the place that the copy left alone holds what it held three trips before
    everywhere(kernel, [a], want, HOPPER)


def test_a_product_of_persistent_blocks_by_three_roles():
    """Loads, products and stores by roles of their own; the scheduler's state is each role's."""

    @T.prim_func
    def kernel(
        A: T.Tensor((192, 96), "float16"), B: T.Tensor((128, 96), "float16"), C: T.Tensor((192, 128), "float16")
    ):
        with T.Kernel(2, threads=128) as block:
            a, b = T.alloc_shared((64, 32), "float16"), T.alloc_shared((64, 32), "float16")
            c, out = T.alloc_fragment((64, 64), "float32"), T.alloc_shared((64, 64), "float16")
            sched = T.PersistentTileScheduler(3, 2, num_workers=2, swizzle_size=2, name="sched")
            T.annotate_ws_schedule(
                T.WSSchedule(
                    num_warps=12,
                    roles=[
                        T.WSRole("Load", warps_lo=0, warps_hi=1, max_nreg=40),
                        T.WSRole("Product", warps_lo=4, warps_hi=8, max_nreg=200),
                        T.WSRole("Store", warps_lo=8, warps_hi=12, max_nreg=40),
                    ],
                    pipelines=[T.WSPipeline("smem", [a, b], depth=2), T.WSPipeline("out", [out], depth=1)],
                    scopes=[
                        T.WSScope(
                            "loop_k",
                            {
                                "Load": [acquire("smem"), "copy_a", "copy_b", commit("smem")],
                                "Product": [wait("smem"), "gemm", release("smem")],
                            },
                        ),
                        T.WSScope(
                            "loop_wave",
                            {
                                "Load": ["tile", "loop_k", "next"],
                                "Product": ["clear", "loop_k", acquire("out"), "to_out", commit("out"), "next"],
                                "Store": ["tile", wait("out"), "store", release("out"), "next"],
                            },
                        ),
                        T.WSScope(T.WSScope.ROOT, {r: ["init", "loop_wave"] for r in ("Load", "Product", "Store")}),
                    ],
                )
            )
            with T.ws_op("init"):
                sched.init(block)
            with T.ws_op("loop_wave"):
                while sched.valid():
                    with T.ws_op("tile"):
                        bx = sched.m_idx
                        by = sched.n_idx
                    T.clear(c, annotations={T.WSID: "clear"})
                    for k in T.Pipelined(3, num_stages=2, annotations={T.WSID: "loop_k"}):
                        T.copy(A[bx * 64, k * 32], a, annotations={T.WSID: "copy_a"})
                        T.copy(B[by * 64, k * 32], b, annotations={T.WSID: "copy_b"})
                        T.gemm(a, b, c, transpose_B=True, annotations={T.WSID: "gemm"})
                    T.copy(c, out, annotations={T.WSID: "to_out"})
                    T.copy(out, C[bx * 64, by * 64], annotations={T.WSID: "store"})
                    with T.ws_op("next"):
                        sched.next_tile()

    a, b = integers(1, (192, 96), "float16", 3), integers(2, (128, 96), "float16", 3)
    made = everywhere(kernel, [a, b], a.astype("f4") @ b.astype("f4").T, HOPPER)["sm_90a"]
    assert len(instructions(made, TmaLoad)) == 2


def test_values_and_branches_stand_in_every_role():
    @T.prim_func
    def kernel(A: T.Tensor((4, 128), "int32"), flag: T.Tensor((1,), "int32"), B: T.Tensor((4, 128), "int32")):
        with T.Kernel(1, threads=128):
            held = T.alloc_shared((128,), "int32")
            T.annotate_ws_schedule(
                T.WSSchedule(
                    8,
                    [T.WSRole("P", warps_lo=0, warps_hi=4), T.WSRole("C", warps_lo=4, warps_hi=8)],
                    [T.WSPipeline("buf", [held], depth=2)],
                    [
                        T.WSScope(
                            "rows",
                            {"P": [acquire("buf"), "add", commit("buf")], "C": [wait("buf"), "take", release("buf")]},
                        ),
                        T.WSScope(T.WSScope.ROOT, {"P": ["rows"], "C": ["rows"]}),
                    ],
                )
            )
            if flag[0] > 0:
                for i in T.serial(4, annotations={T.WSID: "rows"}):
                    row = 3 - i
                    for j in T.Parallel(128, annotations={T.WSID: "add"}):
                        held[j] = A[row, j] + 10
                    for j in T.Parallel(128, annotations={T.WSID: "take"}):
                        B[row, j] = held[j] * 2

    a = integers(3, (4, 128), "int32")
    for flag, want in ((1, (a + 10) * 2), (0, np.zeros_like(a))):
        everywhere(kernel, [a, np.array([flag], np.int32)], want, HOPPER, initial=[np.zeros_like(a)])


def test_the_same_text_without_a_schedule_is_the_same_kernel():
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            held = T.alloc_shared((64, 64), "float16")
            with T.ws_op("in"):
                T.copy(A, held)
            T.copy(held, B, annotations={T.WSID: "out"})

    a = integers(9, (64, 64), "float16")
    everywhere(kernel, [a], a)


def test_the_parts_of_a_schedule():
    sync = T.WSSync.consumer_release("p", stage=3)
    assert sync.kind.same_as(T.WSSyncKind.CONSUMER_RELEASE) and (sync.pipeline, sync.stage) == ("p", 3)
    role = T.WSRole("R", warps_lo=4, warps_hi=8, max_nreg=224)
    assert (role.warp_lo, role.warp_hi) == (4, 8)
    with pytest.raises(TypeError):
        T.WSRole("R", (4, 8))
    with pytest.raises(AssertionError, match="multiple of 4"):
        T.WSSchedule(6, [role], [], [])
    with pytest.raises(LanguageError, match="negative warp range"):
        T.WSRole("R", warps_lo=-1, warps_hi=2)
    with pytest.raises(TargetError):
        run_passes(through_a_ring().kernel, Target.of("sm_80"))


def changed(role, *steps):
    return lambda text: text.update({role: list(steps)})


LOOP = {"Producer": ["loop_k"], "Consumer": ["loop_k"]}
SELF = [acquire("buf"), "copy_in", commit("buf"), wait("buf"), "copy_frag", release("buf")]
REFUSED = {
    "pairs must share one stage": {
        "edit": lambda text: text["Consumer"].insert(2, text["Consumer"].pop(2) and release("buf", 1))
    },
    "no producer": {"edit": changed("Producer", "copy_in")},
    "has no consumer": {"edit": changed("Consumer", "copy_frag", "copy_out")},
    "acquired at the end of a scope body": {"edit": lambda text: text["Producer"].append(acquire("buf"))},
    "acquired twice": {"edit": lambda text: text["Producer"].insert(1, acquire("buf"))},
    "both a producer and a consumer": {"edit": lambda text: text.update(Producer=SELF, Consumer=["copy_out"])},
    "unknown pipeline": {"edit": lambda text: text["Producer"].insert(0, acquire("other"))},
    "no statement in the kernel carries this id": {"edit": lambda text: text["Producer"].append("ghost")},
    "never places": {"edit": lambda text: text["Consumer"].remove("copy_out")},
    "carries no ws op id": {"variant": "unnamed", "edit": lambda text: text["Consumer"].remove("copy_frag")},
    "this statement carries": {"variant": "store"},
    "outside an open span": {"edit": lambda text: text["Producer"].append("copy_frag")},
    "signalled outside": {"edit": lambda text: text["Producer"].append(commit("buf"))},
    "referenced more than once": {"edit": lambda text: text["Consumer"].append("copy_out")},
    "parity diverges": {
        "edit": lambda text: text["Consumer"].extend([wait("buf"), release("buf")]),
    },
    "unknown role": {"edit": lambda text: text.update(Other=["copy_out"])},
    "must be a serial loop": {"loop": T.unroll},
    "keep the order of the text": {
        "edit": changed("Consumer", wait("buf"), "copy_out", "copy_frag", release("buf")),
    },
    "only its producer fills": {
        "edit": lambda text: text.update(
            Producer=[acquire("buf"), commit("buf")],
            Consumer=[wait("buf"), "copy_in", "copy_frag", release("buf"), "copy_out"],
        )
    },
    "goes through a pipeline": {
        "edit": lambda text: text.update(
            Producer=[acquire("buf"), "copy_in", commit("buf"), "copy_out"],
            Consumer=[wait("buf"), "copy_frag", release("buf")],
        )
    },
    "by the engine": {"variant": "async"},
    "laid out by the compiler": {"variant": "placed"},
    "a tile is of one pipeline": {"variant": "twice"},
    "another form of the pipeline's": {"variant": "viewed"},
    "while the engine fills it": {
        "variant": "scaled",
        "edit": changed("Producer", acquire("buf"), "copy_in", "scale", commit("buf")),
    },
    "without T.WSScope.ROOT": {"scopes": [T.WSScope("loop_k", bodies())]},
    "where it does not stand": {
        "scopes": [
            T.WSScope("loop_k", bodies()),
            T.WSScope(T.WSScope.ROOT, {**LOOP, "Producer": ["loop_k", "copy_in"]}),
        ]
    },
    "a warp has one role": {"roles": [ROLES[0], T.WSRole("Consumer", warps_lo=0, warps_hi=4)]},
    "of 4": {"warps": 4},
    "allocates per warpgroup": {
        "roles": [ROLES[0], T.WSRole("Other", warps_lo=1, warps_hi=2, max_nreg=48), ROLES[1]],
    },
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_followed_is_refused(message):
    with pytest.raises(LanguageError, match=message):
        through_a_ring(**REFUSED[message])


def test_stages_that_differ_are_refused():
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            one, two = T.alloc_shared((64,), "float16"), T.alloc_shared((64,), "float16")
            pipes = [T.WSPipeline("a", [one], 2), T.WSPipeline("b", [two], 2)]
            text = {
                "Producer": [acquire("a"), "in_a", commit("a"), acquire("b", 1), "in_b", commit("b", 1)],
                "Consumer": [wait("a"), "out_a", release("a"), wait("b"), "out_b", release("b")],
            }
            scopes = [T.WSScope("rows", text), T.WSScope(T.WSScope.ROOT, {"Producer": ["rows"], "Consumer": ["rows"]})]
            T.annotate_ws_schedule(T.WSSchedule(8, ROLES, pipes, scopes))
            for i in T.serial(64, annotations={T.WSID: "rows"}):
                T.copy(A[i, 0:64], one, annotations={T.WSID: "in_a"})
                T.copy(A[i, 0:64], two, annotations={T.WSID: "in_b"})
                T.copy(one, B[i, 0:64], annotations={T.WSID: "out_a"})
                T.copy(two, B[i, 0:64], annotations={T.WSID: "out_b"})

    with pytest.raises(LanguageError, match="stages 0 and 1 in role 'Producer'"):
        T.prim_func(kernel)


def crossed(one, two, depth):
    """Two tiles a trip from one role to another, filled in the order (one) and taken in the order (two)."""

    @T.prim_func
    def kernel(A: T.Tensor((8, 64), "int32"), B: T.Tensor((8, 64), "int32"), C: T.Tensor((8, 64), "int32")):
        with T.Kernel(1, threads=128):
            left, right = T.alloc_shared((64,), "int32"), T.alloc_shared((64,), "int32")
            text = {"Producer": [], "Consumer": []}
            # The producer fills the second tile before it says that the first is full.
            text["Producer"] = [*one, acquire("a"), "in_a", commit("a"), *two]
            text["Consumer"] = [wait("a"), "out_a", release("a"), wait("b"), "out_b", release("b")]
            pipes = [T.WSPipeline("a", [left], depth), T.WSPipeline("b", [right], depth)]
            scopes = [T.WSScope("rows", text), T.WSScope(T.WSScope.ROOT, {"Producer": ["rows"], "Consumer": ["rows"]})]
            T.annotate_ws_schedule(T.WSSchedule(8, ROLES, pipes, scopes))
            for i in T.serial(8, annotations={T.WSID: "rows"}):
                T.copy(A[i, 0:64], left, annotations={T.WSID: "in_a"})
                T.copy(A[i, 0:64], right, annotations={T.WSID: "in_b"})
                T.copy(left, B[i, 0:64], annotations={T.WSID: "out_a"})
                T.copy(right, C[i, 0:64], annotations={T.WSID: "out_b"})

    return kernel


def test_orders_that_differ_between_roles_may_wait_for_one_another():
    a = integers(11, (8, 64), "int32")
    everywhere(crossed([], [acquire("b"), "in_b", commit("b")], 1), [a], [a, a], HOPPER)
    everywhere(crossed([acquire("b"), "in_b", commit("b")], [], 1), [a], [a, a], HOPPER)


def test_a_deadlock_is_refused():
    """Each of two roles waits for a tile of the other's before it gives its own."""

    def kernel(A: T.Tensor((4, 64), "int32"), B: T.Tensor((4, 64), "int32")):
        with T.Kernel(1, threads=128):
            one, two = T.alloc_shared((64,), "int32"), T.alloc_shared((64,), "int32")
            text = {
                "Producer": [wait("b"), "out_b", release("b"), acquire("a"), "in_a", commit("a")],
                "Consumer": [wait("a"), "out_a", release("a"), acquire("b"), "in_b", commit("b")],
            }
            pipes = [T.WSPipeline("a", [one], 2), T.WSPipeline("b", [two], 2)]
            scopes = [T.WSScope("rows", text), T.WSScope(T.WSScope.ROOT, {"Producer": ["rows"], "Consumer": ["rows"]})]
            T.annotate_ws_schedule(T.WSSchedule(8, ROLES, pipes, scopes))
            for i in T.serial(4, annotations={T.WSID: "rows"}):
                T.copy(A[i, 0:64], one, annotations={T.WSID: "in_a"})
                T.copy(one, B[i, 0:64], annotations={T.WSID: "out_a"})
                T.copy(A[i, 0:64], two, annotations={T.WSID: "in_b"})
                T.copy(two, B[i, 0:64], annotations={T.WSID: "out_b"})

    with pytest.raises(LanguageError, match="deadlock: role 'Producer' waits at consumer_wait of 'b'"):
        T.prim_func(kernel)
