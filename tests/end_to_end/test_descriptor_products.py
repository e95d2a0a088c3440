"""T.ptx_wgmma_ss and T.ptx_wgmma_rs: products through descriptors that the kernel writes itself, on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, instructions, integers
from tileworkbench.compat.layouts import make_swizzled_layout
from tileworkbench.errors import LanguageError, SimulationError, TargetError
from tileworkbench.ir import instr as I
from tileworkbench.layout import SharedLayout
from tileworkbench.layout.transform import repeat
from tileworkbench.layout.wgmma import wgmma_accumulator_fragment
from tileworkbench.pipeline import run_passes
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

M = 64
MODES = {0: 0, 128: 1, 64: 2, 32: 3}
SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "tf32", "int8": "int8", "float8_e4m3fn": "e4m3"}


def core_matrices(rows: int, columns: int, item: int) -> Any:
    """8 rows of 16 bytes in one piece; pieces row by row."""
    width = 16 // item
    return T.Layout(
        (rows, columns), lambda i, j: (i // 8 * (columns // width) + j // width) * 8 * width + i % 8 * width + j % width
    )


@T.macro
def store(c: Any, C: Any, tx: Any, columns: int) -> None:
    """Registers of an accumulator to where the instruction's layout says they belong."""
    for i in T.serial(columns // 8):
        for j in T.serial(4):
            C[tx // 32 * 16 + tx % 32 // 4 + j // 2 * 8, i * 8 + tx % 4 * 2 + j % 2] = c[i * 4 + j]


def k_major(dtype: str, span: int, N: int, out: str = "float32") -> Any:
    item = {"float16": 2, "bfloat16": 2, "float32": 4, "int8": 1, "float8_e4m3fn": 1}[dtype]
    K = 128 // item if not span else span // item  # one panel, or four core matrices and more
    step, mode = 32 // item, MODES[span]
    leading, stride = (8, K * item // 16 * 8) if not span else (1, 8 * span // 16)
    prefix, ab, acc = f"m64n{N}k{step}", SHORT[dtype], {"float32": "fp32", "int32": "int32", "float16": "fp16"}[out]

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            a = T.alloc_shared((M, K), dtype)
            b = T.alloc_shared((N, K), dtype)
            c = T.alloc_local((N // 2,), out)
            if span:
                T.annotate_layout({x: SharedLayout.swizzled(x.shape, item, span) for x in (a, b)})
            else:
                T.annotate_layout({a: core_matrices(M, K, item), b: core_matrices(N, K, item)})
            T.copy(A, a)
            T.copy(B, b)
            da = T.alloc_wgmma_desc()
            db = T.alloc_descriptor("wgmma")
            T.initialize_wgmma_descriptor(da, T.access_ptr(a[0, 0], "r"), mode, leading, stride)
            T.initialize_wgmma_descriptor(db, T.address_of(b[0, 0]), mode, leading, stride)
            T.warpgroup_arrive()
            for ki in T.unroll(K // step):
                at = ki * 2 if span else ki * 16
                T.ptx_wgmma_ss(out, prefix, True, True, ab, ab, acc, da.data, at, db.data, at, c, 0, ki != 0, 1, 1)
            T.warpgroup_commit_batch()
            T.warpgroup_wait(0)
            store(c, C, tx, N)

    return kernel, K


def truth(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.parametrize("span", [128, 64, 32, 0])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_k_major_operands(dtype: str, span: int) -> None:
    out = "int32" if dtype == "int8" else "float32"
    kernel, K = k_major(dtype, span, 48 if dtype == "int8" else 40, out)
    a, b = integers(1, (M, K), dtype, 7), integers(2, (kernel.kernel.params[1].shape[0], K), dtype, 7)
    made = everywhere(kernel, [a, b], truth(a, b), ["sm_90a"])["sm_90a"]
    assert len(instructions(made, I.Wgmma)) == 1


@pytest.mark.parametrize("span", [128, 64, 32])
def test_mn_major_operands(span: int) -> None:
    """Both operands are stored (K, MN): panels of one span lie `leading` apart, groups of 8 rows `stride`."""
    N, K, panel = 128, 32, span // 2

    @T.prim_func
    def kernel(A: T.Tensor((K, M), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            a = T.alloc_shared((K, M), "float16")
            b = T.alloc_shared((K, N), "float16")
            c = T.alloc_local((N // 2,), "float32")
            T.annotate_layout({x: SharedLayout.swizzled(x.shape, 2, span) for x in (a, b)})
            T.copy(A, a)
            T.copy(B, b)
            da, db = T.alloc_wgmma_desc(), T.alloc_wgmma_desc()
            T.initialize_wgmma_descriptor(da, T.access_ptr(a[0, 0]), MODES[span], K * span // 16, 8 * span // 16)
            T.initialize_wgmma_descriptor(db, T.access_ptr(b[0, 0]), MODES[span], K * span // 16, 8 * span // 16)
            T.warpgroup_arrive()
            for ki in T.unroll(2):
                at = ki * 16 * panel * 2 // 16
                T.ptx_wgmma_ss(
                    "float32", f"m64n{N}k16", False, False, "fp16", "fp16", "fp32", da, at, db, at, c, 0, ki, 1, 1
                )
            T.warpgroup_commit_batch()
            T.warpgroup_wait(0)
            store(c, C, tx, N)

    a, b = integers(3, (K, M), "float16", 7), integers(4, (K, N), "float16", 7)
    everywhere(kernel, [a, b], truth(a.T, b.T), ["sm_90a"])


@pytest.mark.parametrize("fragments", [False, True])
@pytest.mark.parametrize("trips", [4, 3])
def test_registers_and_two_warpgroups_that_step_a_descriptor(fragments: bool, trips: int) -> None:
    """A from registers; each warpgroup has 64 of the rows; the descriptor moves from trip to trip."""
    N, K, rows = 64, 64, 2 * M

    @T.prim_func
    def kernel(A: T.Tensor((rows, K), "bfloat16"), B: T.Tensor((N, K), "bfloat16"), C: T.Tensor((rows, N), "float32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            b = T.alloc_shared((N, K), "bfloat16")
            x = T.alloc_local((8,), "bfloat16")
            if fragments:
                c = T.alloc_fragment((rows, N), "float32")
                T.annotate_layout({c: repeat(wgmma_accumulator_fragment(N), 0, 2, "thread")})
                T.fill(c, 5)
            else:
                c = T.alloc_local((N // 2,), "float32")
                for i in T.unroll(N // 2):
                    c[i] = 5
            T.annotate_layout({b: make_swizzled_layout(b)})
            T.copy(B, b)
            d = T.alloc_wgmma_desc()
            T.initialize_wgmma_descriptor(d, T.access_ptr(b[0, 0]), 1, 1, 64)
            for k in T.serial(trips):
                for i in T.unroll(8):
                    x[i] = A[tx // 32 * 16 + tx % 32 // 4 + i // 2 % 2 * 8, k * 16 + i // 4 * 8 + tx % 4 * 2 + i % 2]
                T.warpgroup_arrive()
                T.ptx_wgmma_rs("float32", "m64n64k16", True, "bf16", "bf16", "fp32", x, 0, d, 0, c, 0, True, 1, 1)
                T.warpgroup_commit_batch()
                T.warpgroup_wait(0)
                T.increase_descriptor_offset(d, 32)
            if fragments:
                T.copy(c, C)
            else:
                store(c, C, tx, N)

    a, b = integers(5, (rows, K), "bfloat16", 7), integers(6, (N, K), "bfloat16", 7)
    everywhere(kernel, [a, b], truth(a[:, : 16 * trips], b[:, : 16 * trips]) + 5, ["sm_90a"])


def gemm(stages: int, staged: str, late: bool = False, arrive: bool = True, wait: bool = True) -> Any:
    """A loop over K of tiles brought by copies or by ordinary stores. `late`: a product is waited for a trip later."""
    N, K = 64, 256

    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            a = T.alloc_shared((M, 64), "float16")
            b = T.alloc_shared((N, 64), "float16")
            c = T.alloc_local((N // 2,), "float32")
            T.annotate_layout({x: make_swizzled_layout(x) for x in (a, b)})
            for i in T.unroll(N // 2):
                c[i] = 0
            for k in T.Pipelined(K // 64, num_stages=stages):
                if staged == "copies":
                    T.copy(A[0, k * 64], a)
                    T.copy(B[0, k * 64], b)
                else:
                    for i, j in T.Parallel(M, 64):
                        a[i, j] = A[i, k * 64 + j] + 1
                    T.copy(B[0, k * 64], b)
                da, db = T.alloc_wgmma_desc(), T.alloc_wgmma_desc()
                T.initialize_wgmma_descriptor(da, T.access_ptr(a[0, 0], "r"), 1, 1, 64)
                T.initialize_wgmma_descriptor(db, T.access_ptr(b[0, 0], "r"), 1, 1, 64)
                if arrive:
                    T.warpgroup_arrive()
                for ki in T.unroll(4):
                    T.ptx_wgmma_ss(
                        "float32",
                        "m64n64k16",
                        True,
                        True,
                        "fp16",
                        "fp16",
                        "fp32",
                        da,
                        ki * 2,
                        db,
                        ki * 2,
                        c,
                        0,
                        True,
                        1,
                        1,
                    )
                T.warpgroup_commit_batch()
                if wait:
                    T.warpgroup_wait(1 if late else 0)
            if late:
                T.warpgroup_wait(0)
            store(c, C, tx, N)

    return kernel


@pytest.mark.parametrize("stages", [0, 1, 2, 3])
@pytest.mark.parametrize("staged", ["copies", "stores"])
def test_tiles_of_a_loop(staged: str, stages: int) -> None:
    a, b = integers(7, (M, 256), "float16", 3), integers(8, (64, 256), "float16", 3)
    everywhere(gemm(stages, staged), [a, b], truth(a + (staged == "stores"), b), ["sm_90a"])


@pytest.mark.parametrize("left_out", ["arrive", "wait"])
def test_what_the_kernel_leaves_out_is_a_fault_of_the_machine(left_out: str) -> None:
    kernel = run_passes(gemm(2, "copies", **{left_out: False}).kernel, Target.of("sm_90a"))
    a, b = integers(7, (M, 256), "float16", 3), integers(8, (64, 256), "float16", 3)
    with pytest.raises(SimulationError):
        thread.run(kernel, [a, b, np.zeros((M, 64), np.float32)], target=Target.of("sm_90a"))


def one(layout: Any = None, at: int = 0, target: str = "sm_90a", inside: str = "", fragment: bool = False) -> Any:
    """A product of one instruction, and what may be wrong with it."""

    @T.prim_func
    def kernel(C: T.Tensor((128, 32), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            s = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32") if fragment else T.alloc_local((32,), "float32")
            T.fill(s, 1)
            if layout is not None:
                T.annotate_layout({s: layout(s)})
            d = T.alloc_wgmma_desc()
            T.initialize_wgmma_descriptor(d, T.access_ptr(s[0, 0], "r"), 1, 1, 64)
            T.warpgroup_arrive()
            if inside == "half":
                if tx < 64:
                    T.ptx_wgmma_ss("float32", "m64n64k16", True, True, "fp16", "fp16", "fp32", d, at, d, at, c, 0, 0)
            elif inside == "late":
                for k in T.serial(tx // 128, 1):
                    T.ptx_wgmma_ss("float32", "m64n64k16", True, True, "fp16", "fp16", "fp32", d, at, d, at, c, k, 0)
            else:
                T.ptx_wgmma_ss("float32", "m64n64k16", True, True, "fp16", "fp16", "fp32", d, at, d, at, c, 0, 0)
            T.warpgroup_commit_batch()
            T.warpgroup_wait(0)
            if fragment:
                T.copy(c[0, 0], C[0:64, 0:32])
            else:
                for i in T.unroll(32):
                    C[tx, i] = c[i]

    return kernel


@pytest.mark.parametrize(
    ("options", "target", "kind", "words"),
    [
        ({"layout": make_swizzled_layout}, "sm_80", TargetError, "no wgmma"),
        ({}, "sm_90a", LanguageError, "where the tile must begin"),
        ({"layout": make_swizzled_layout, "inside": "half"}, "sm_90a", LanguageError, "execute it together"),
        ({"layout": make_swizzled_layout, "inside": "late"}, "sm_90a", LanguageError, "numbered while compiling"),
    ],
)
def test_what_the_compiler_refuses(options: dict[str, Any], target: str, kind: type, words: str) -> None:
    with pytest.raises(kind) as caught:
        run_passes(one(**options).kernel, Target.of(target))
    assert words in caught.value.rule and caught.value.loc is not None


def test_a_fragment_without_a_layout_is_refused() -> None:
    with pytest.raises(LanguageError, match="fragment `c`, which has no layout"):
        _ = one(make_swizzled_layout, fragment=True).kernel


@pytest.mark.parametrize(
    ("options", "words"),
    [({"at": 64}, "outside of it"), ({"at": -1}, "outside of it"), ({"inside": "half"}, "by part of a warpgroup")],
)
def test_what_the_tile_machine_refuses(options: dict[str, Any], words: str) -> None:
    with pytest.raises(SimulationError, match=words) as caught:
        tile.run(one(make_swizzled_layout, **options).kernel, [np.zeros((128, 32), np.float32)])
    assert caught.value.loc is not None
