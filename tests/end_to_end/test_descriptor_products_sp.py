"""T.ptx_wgmma_sp_ss and T.ptx_wgmma_sp_rs: sparse products through descriptors, on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, instructions, integers
from tests.end_to_end.test_descriptor_products import SHORT, store, truth
from tileworkbench.compat.layouts import make_swizzled_layout
from tileworkbench.errors import SimulationError
from tileworkbench.ir.instr import Wgmma
from tileworkbench.pipeline import run_passes
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

M, N = 64, 64


def compressed(K: int, dtype: str, selector: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(dense A, its held half, 32 bits of metadata for each thread and step of one instruction).

    Two of four neighbours are held, of float32 one of two; a 4-bit field says which, the row's first lowest. Of 16- and
    32-bit types lane 2 selector + h of a quad has the four fields of half h of K: of row lane / 4 in bits 0 to 15, of
    the row 8 below in the others. Of 8-bit types every lane has eight: odd ones of the row 8 below, lanes 2 and 3 of
    the second half."""
    rng = np.random.default_rng(seed)
    size, keep = (2, 1) if dtype == "float32" else (4, 2)
    groups = K // size
    place = np.sort(rng.permuted(np.tile(np.arange(size), (M, groups, 1)), axis=-1)[..., :keep], axis=-1)
    held = rng.integers(1, 8, (M, groups, keep)).astype(dtype)
    dense = np.zeros((M, groups, size), dtype)
    np.put_along_axis(dense, place, held, -1)
    field = np.where(place[..., 0] == 0, 0b0100, 0b1110) if keep == 1 else place[..., 0] | place[..., 1] << 2
    narrow = np.dtype(dtype).itemsize == 1
    per_step = 16 if narrow else 8
    steps = groups // per_step
    words = np.full((128, steps), 0xFFFF, np.int64)  # fields 0b1111 have no meaning
    for t in range(128):
        row, lane = t // 32 * 16 + t % 32 // 4, t % 4
        for s in range(steps):
            of = field[:, s * per_step : (s + 1) * per_step]
            if narrow:
                bits = of[row + lane % 2 * 8, lane // 2 * 8 : lane // 2 * 8 + 8]
            elif lane // 2 == selector:
                half = slice(lane % 2 * 4, lane % 2 * 4 + 4)
                bits = np.concatenate([of[row, half], of[row + 8, half]])
            else:
                continue
            words[t, s] = sum(int(b) << 4 * i for i, b in enumerate(bits))
    return dense.reshape(M, K), held.reshape(M, -1), words.astype(np.uint32).view(np.int32)


def product(K: int, dtype: str, selector: int, registers: bool, out: str) -> Any:
    item = np.dtype(dtype).itemsize
    step, steps, short = 64 // item, K * item // 64, SHORT[dtype]
    prefix, acc, count = f"m64n{N}k{step}", {"float32": "fp32", "int32": "int32"}[out], 16 // item

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K // 2), dtype), E: T.Tensor((128, steps), "int32"), B: T.Tensor((N, K), dtype),
        C: T.Tensor((M, N), out),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            a = T.alloc_shared((M, K // 2), dtype)
            b = T.alloc_shared((N, K), dtype)
            c = T.alloc_local((N // 2,), out)
            e = T.alloc_local((steps,), "int32")
            x = T.alloc_local((count,), dtype)
            T.annotate_layout({y: make_swizzled_layout(y) for y in (a, b)})
            T.copy(A, a)
            T.copy(B, b)
            for s in T.unroll(steps):
                e[s] = E[tx, s]
            da, db = T.alloc_wgmma_desc(), T.alloc_wgmma_desc()
            span = min(K // 2 * item, 128)
            T.initialize_wgmma_descriptor(da, T.access_ptr(a[0, 0]), {128: 1, 64: 2}[span], 1, span // 2)
            T.initialize_wgmma_descriptor(db, T.access_ptr(b[0, 0]), 1, 1, 64)
            for s in T.unroll(steps):
                at = s // 2 * (N * 8) + s % 2 * 4
                if registers:
                    for i in T.unroll(count):
                        x[i] = A[
                            tx // 32 * 16 + tx % 32 // 4 + i // (4 // item) % 2 * 8,
                            s * step // 2 + i // (8 // item) * (16 // item) + tx % 4 * (4 // item) + i % (4 // item),
                        ]
                T.warpgroup_arrive()
                if registers:
                    T.ptx_wgmma_sp_rs(out, prefix, True, short, short, acc, x, 0, e, s, selector, db, at, c, 0, s != 0)
                else:
                    T.ptx_wgmma_sp_ss(
                        out, prefix, True, True, short, short, acc, da, s * 2, e, s, selector, db, at, c, 0, s != 0
                    )
                T.warpgroup_commit_batch()
                T.warpgroup_wait(0)
            store(c, C, tx, N)

    return kernel


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize(("dtype", "K", "selector"), [
    ("float16", 64, 0), ("float16", 128, 1), ("bfloat16", 64, 1), ("float32", 32, 0), ("float32", 32, 1),
    ("int8", 128, 0),
])  # fmt: skip
def test_types_and_selectors(dtype: str, K: int, selector: int, registers: bool) -> None:
    out = "int32" if dtype == "int8" else "float32"
    plain = "float16" if dtype == "bfloat16" else dtype
    dense, held, words = compressed(K, plain, selector, K)
    b = integers(9, (N, K), plain, 5)
    if dtype == "bfloat16":
        import ml_dtypes

        held, b = held.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    kernels = everywhere(product(K, dtype, selector, registers, out), [held, words, b], truth(dense, b), ["sm_90a"])
    assert all(s.selector == selector and s.e is not None for s in instructions(kernels["sm_90a"], Wgmma))


def test_metadata_of_other_lanes_is_found() -> None:
    _, held, words = compressed(64, "float16", 1, 3)
    b, out = integers(9, (N, 64), "float16", 5), np.zeros((M, N), np.float32)
    kernel = product(64, "float16", 0, False, "float32")
    with pytest.raises(SimulationError, match="places two elements at once"):
        tile.run(kernel.kernel, [held, words, b, out])
    with pytest.raises(SimulationError, match="metadata 0b1111"):
        thread.run(run_passes(kernel.kernel, Target.of("sm_90a")), [held, words, b, out], target=Target.of("sm_90a"))
