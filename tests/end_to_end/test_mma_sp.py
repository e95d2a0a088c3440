"""T.ptx_mma_sp on every machine: sparse matrix instructions that a kernel writes itself. Operands are put into lanes by
the manual's formulas here, not by the package's tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import NVIDIA, everywhere, instructions, lowered
from tests.end_to_end.test_sparse import CONTAINER, operands
from tileworkbench.errors import LanguageError, ShapeError, SimulationError, TargetError
from tileworkbench.ir.instr import MmaSparse
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

LANE = np.arange(32)
SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "tf32", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}


def rows_of(matrix: np.ndarray) -> np.ndarray:
    """(lanes, elements) of an operand of 8 or 16 rows. PTX: a register holds neighbours of row lane / 4, the next one
    those 8 rows below, then those further along K."""
    rows, packed = matrix.shape[0] // 8, 4 // matrix.itemsize
    i = np.arange(matrix.size // 32)[None, :]
    column = LANE[:, None] % 4 * packed + i % packed + i // (packed * rows) * 4 * packed
    return matrix[LANE[:, None] // 4 + i // packed % rows * 8, column]


def accumulators(matrix: np.ndarray) -> np.ndarray:
    i = np.arange(4)[None, :]
    return matrix[LANE[:, None] // 4 + i // 2 * 8, LANE[:, None] % 4 * 2 + i % 2]


def words_of(e: np.ndarray, k: int, itemsize: int, selector: int) -> np.ndarray:
    """The 32 bits of each lane, from fields (16, groups); a value without meaning in lanes that give none."""
    lanes = k * itemsize // 32 * (2 if itemsize == 1 else 1)  # of four
    words = np.full(32, 0x55555555, np.uint32)
    for lane in range(32):
        part = lane % 4 - selector * lanes
        if not 0 <= part < lanes:
            continue
        if itemsize == 1:
            held = e[lane // 4 + part % 2 * 8, part // 2 * 8 :][:8]
        else:
            held = np.concatenate([e[row, part * 4 :][:4] for row in (lane // 4, lane // 4 + 8)])
        words[lane] = sum(int(x) << 4 * i for i, x in enumerate(held))
    return words


def product(k: int, a_dtype: str, b_dtype: str, accum: str, meta: str, selector: int, steps: int = 1) -> Any:
    """`steps` products of one warp, each on registers that lie one after the other."""
    na, nb, ne = k // 4, k // 4, 32 // T.dtype(meta).bits
    names = [SHORT.get(x, x) for x in (a_dtype, b_dtype)]

    @T.prim_func
    def kernel(
        A: T.Tensor((32, steps * na), a_dtype), B: T.Tensor((32, steps * nb), b_dtype),
        E: T.Tensor((32, steps * ne), meta), C: T.Tensor((32, 4), accum),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            a = T.alloc_local((steps * na,), a_dtype)
            b = T.alloc_local((steps * nb,), b_dtype)
            e = T.alloc_local((steps * ne,), meta)
            c = T.alloc_local((4,), accum)
            T.clear(c)
            for i in T.unroll(steps * na):
                a[i] = A[t, i]
                b[i] = B[t, i]
            for i in T.unroll(steps * ne):
                e[i] = E[t, i]
            for s in T.unroll(steps):
                T.ptx_mma_sp(
                    accum, f"m16n8k{k}", "row", "col", names[0], names[1], accum, a.data, s * na, b.data, s * nb,
                    c.data, 0, e.data, s * ne, selector, T.bool(False),
                )  # fmt: skip
            for i in T.unroll(4):
                C[t, i] = c[i]

    return kernel


def given(k: int, a_dtype: str, b_dtype: str, meta: str, selector: int, seed: int) -> tuple[list[np.ndarray], Any]:
    a, fields, *_ = operands(16, 8, k, a_dtype, "uint8", seed)
    b = np.random.default_rng(seed).integers(0 if b_dtype == "uint8" else -3, 4, (8, k))
    nibbles = np.stack([fields & 15, fields >> 4], axis=-1).reshape(16, -1)
    words = words_of(nibbles, k, a.itemsize, selector).view(meta).reshape(32, -1)
    return [rows_of(a), rows_of(b.astype(CONTAINER[b_dtype])), words], expanded(a, nibbles) @ b.T


def expanded(held: np.ndarray, nibbles: np.ndarray) -> np.ndarray:
    count, size = (1, 2) if held.itemsize == 4 else (2, 4)
    out = np.zeros((*nibbles.shape, size))
    for at, nibble in np.ndenumerate(nibbles):
        for i in range(count):
            place = nibble >> 3 if count == 1 else nibble >> 2 * i & 3
            out[(*at, place)] = held.reshape(*nibbles.shape, count)[(*at, i)]
    return out.reshape(16, -1)


F16, BF16, F32, HOPPER = "float16", "bfloat16", "float32", ("sm_90a",)
CASES = [
    (32, F16, F16, F32, "int16", 0, NVIDIA), (32, F16, F16, F16, "uint32", 1, NVIDIA),
    (16, F16, F16, F32, "int32", 0, NVIDIA), (16, F16, F16, F16, "uint8", 3, NVIDIA),
    (32, BF16, BF16, F32, "int8", 1, NVIDIA), (16, BF16, BF16, F32, "int16", 1, NVIDIA),
    (16, F32, F32, F32, "int16", 1, NVIDIA), (8, F32, F32, F32, "int32", 2, NVIDIA),
    (64, "int8", "uint8", "int32", "int32", 0, NVIDIA), (32, "uint8", "int8", "int32", "uint16", 1, NVIDIA),
    (32, "int8", "int8", "int32", "int32", 0, NVIDIA), (64, "uint8", "uint8", "int32", "int8", 0, NVIDIA),
    (64, "float8_e4m3fn", "float8_e5m2", F32, "uint32", 0, HOPPER),
    (64, "float8_e5m2", "float8_e5m2", F32, "int16", 0, HOPPER),
]  # fmt: skip


@pytest.mark.parametrize(("k", "a_dtype", "b_dtype", "accum", "meta", "selector", "targets"), CASES)
def test_rows(k: int, a_dtype: str, b_dtype: str, accum: str, meta: str, selector: int, targets: Any) -> None:
    inputs, truth = given(k, a_dtype, b_dtype, meta, selector, k + selector)
    func = product(k, a_dtype, b_dtype, accum, meta, selector)
    kernels = everywhere(func, inputs, accumulators(truth), targets)
    made = instructions(kernels["sm_90a"], MmaSparse)
    assert [s.selector for s in made] == [selector] and f"m16n8k{k}." in made[0].atom


def test_steps_along_k_add_up() -> None:
    parts = [given(32, "float16", "float16", "int16", 0, seed) for seed in (1, 2, 3)]
    inputs = [np.concatenate(x, axis=1) for x in zip(*(p[0] for p in parts), strict=True)]
    func = product(32, "float16", "float16", "float32", "int16", 0, steps=3)
    everywhere(func, inputs, accumulators(sum(p[1] for p in parts)), NVIDIA)


def test_each_warp_has_its_own_operands() -> None:
    """Four warps in each of two blocks; one lane of four reads the metadata, the others have never written theirs."""

    @T.prim_func
    def kernel(
        A: T.Tensor((128, 8), "float16"), E: T.Tensor((128, 1), "int16"), B: T.Tensor((16, 16), "float16"),
        C: T.Tensor((128, 8), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=128) as bx:
            t = T.get_thread_binding()
            row, quad = bx * 64 + t // 32 * 16 + t % 32 // 4, t % 4
            a = T.alloc_local((4,), "float16")
            b = T.alloc_local((4,), "float16")
            e = T.alloc_local((2,), "int16")
            c = T.alloc_local((4,), "float32")
            for i in T.unroll(4):
                a[i] = A[row + i // 2 * 8, quad * 2 + i % 2]
                b[i] = B[quad * 2 + i // 2 * 8 + i % 2, t % 32 // 4 + bx * 8]
                c[i] = 1.0
            if quad == 2:
                for i in T.unroll(2):
                    e[i] = E[row + i * 8, 0]
            T.ptx_mma_sp(
                "float32", "m16n8k16", "row", "col", "fp16", "fp16", "fp32", a.data, 0, b.data, 0, c.data, 0, e.data,
                0, 2, False,
            )  # fmt: skip
            for i in T.unroll(4):
                C[row + i // 2 * 8, quad * 2 + i % 2] = c[i]

    a, e, b, truth = operands(128, 16, 16, "float16", "int16")
    wanted = np.concatenate([truth[:64, :8], truth[64:, 8:]]) + 1
    everywhere(kernel, [a, e, b], wanted, NVIDIA)


def test_metadata_of_warps_that_do_not_come_is_not_read() -> None:
    @T.prim_func
    def kernel(E: T.Tensor((2, 64), "int32"), C: T.Tensor((2, 64), "float32")):
        with T.Kernel(2, threads=64) as bx:
            t = T.get_thread_binding()
            a = T.alloc_local((8,), "float16")
            e = T.alloc_local((1,), "int32")
            c = T.alloc_local((4,), "float32")
            T.clear(c)
            T.fill(a, 1)
            e[0] = E[bx, t]
            if t // 32 == bx:
                T.ptx_mma_sp(
                    "float32", "m16n8k32", "row", "col", "fp16", "fp16", "fp32", a, 0, a, 0, c, 0, e, 0, 0, False
                )
            C[bx, t] = c[0]

    comes = np.arange(64) // 32 == np.arange(2)[:, None]
    words = np.where(comes, 0x44444444, 0).astype(np.int32)  # 0 places both elements of a group at once
    everywhere(kernel, [words], np.where(comes, 16.0, 0.0), NVIDIA)


def test_metadata_without_meaning_is_found() -> None:
    inputs, truth = given(32, "float16", "float16", "int32", 1, 5)
    inputs[0] = np.ones_like(inputs[0])
    func = product(32, "float16", "float16", "float32", "int32", 0)  # lanes 2 and 3 have it, not 0 and 1
    out = np.zeros((32, 4), np.float32)
    with pytest.raises(SimulationError, match=r"T\.ptx_mma_sp: the metadata `e` places two elements at once") as caught:
        tile.run(func.kernel, [*inputs, out])
    assert caught.value.loc is not None
    with pytest.raises(SimulationError, match="metadata 0b0101 for group 0 of row 0"):
        thread.run(lowered(func, "sm_80"), [*inputs, out], target=Target.of("sm_80"))


def test_metadata_that_was_never_written_is_found() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((32, 4), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            a = T.alloc_local((8,), "float16")
            e = T.alloc_local((1,), "int32")
            c = T.alloc_local((4,), "float32")
            T.clear(a)
            T.clear(c)
            if t % 4 < 2:
                e[0] = 0x44444444
            T.ptx_mma_sp("float32", "m16n8k32", "row", "col", "fp16", "fp16", "fp32", a, 0, a, 0, c, 0, e, 0, 1, False)
            for i in T.unroll(4):
                C[t, i] = c[i]

    with pytest.raises(SimulationError, match=r"`e`.*never written|never written.*`e`"):
        tile.run(kernel.kernel, [np.zeros((32, 4), np.float32)])
    with pytest.raises(SimulationError, match="never written"):
        thread.run(lowered(kernel, "sm_80"), [np.zeros((32, 4), np.float32)], target=Target.of("sm_80"))


@pytest.mark.parametrize("target", ["sm_75", "gfx942"])
def test_targets_without_it(target: str) -> None:
    with pytest.raises(TargetError, match=r"mma\.sp.*m16n8k32") as caught:
        lowered(product(32, "float16", "float16", "float32", "int16", 0), target)
    assert target in caught.value.rule and caught.value.loc is not None
    with pytest.raises(TargetError, match="e4m3"):
        lowered(product(64, "float8_e4m3fn", "float8_e4m3fn", "float32", "int32", 0), "sm_80")


def test_what_a_lane_holds_starts_with_a_register() -> None:
    def kernel(first: Any) -> Any:
        @T.prim_func
        def made(C: T.Tensor((32, 4), "float32")):
            with T.Kernel(1, threads=32):
                a = T.alloc_local((16,), "float16")
                e = T.alloc_local((4,), "int16")
                c = T.alloc_local((4,), "float32")
                T.clear(a)
                T.clear(c)
                T.clear(e)
                for i in T.unroll(2):
                    T.ptx_mma_sp(
                        "float32", "m16n8k32", "row", "col", "fp16", "fp16", "fp32", a, 0, a, 8, c, 0, e, i * first,
                        0, False,
                    )  # fmt: skip
                C[T.get_thread_binding(), 0] = c[0]

        return made

    with pytest.raises(LanguageError, match="inside of a register") as caught:
        lowered(kernel(1), "sm_80")
    assert "multiple of 2" in caught.value.rule
    assert len(instructions(lowered(kernel(2), "sm_80"), MmaSparse)) == 1


def test_arrays_are_of_the_instructions_types() -> None:
    with pytest.raises(ShapeError, match=r"operand b, `b`, is an array of int8"):

        @T.prim_func
        def kernel(C: T.Tensor((32, 4), "int32")):
            with T.Kernel(1, threads=32):
                a = T.alloc_local((8,), "uint8")
                b = T.alloc_local((8,), "int8")
                c = T.alloc_local((4,), "int32")
                T.ptx_mma("int32", "m16n8k32", "row", "col", "uint8", "uint8", "int32", a, 0, b, 0, c, 0)
