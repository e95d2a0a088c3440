"""Features that kernels in the field use, a small kernel each: exact on the tile and the thread machine."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tests.end_to_end.harness import NVIDIA, built, everywhere, integers, lowered
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import LanguageError, SimulationError, TargetError
from tileworkbench.ir.text import show
from tileworkbench.pipeline import run_passes
from tileworkbench.simulate import tile
from tileworkbench.target import Target


def reduce_along(nx, ny, dim, kind):
    combine = {"sum": lambda x, y: x + y, "max": T.max, "bitxor": lambda x, y: x ^ y}[kind]

    @T.prim_func
    def kernel(A: T.Tensor((ny, nx), "int32"), B: T.Tensor((ny, nx), "int32")):
        with T.Kernel(1, threads=(nx, ny)):
            tx = T.thread_binding(0, nx, thread="threadIdx.x")
            ty = T.thread_binding(0, ny, thread="threadIdx.y")
            mine = T.alloc_local((1,), "int32")
            out = T.alloc_local((1,), "int32")
            mine[0] = A[ty, tx]
            with T.attr(T.comm_reducer(combine, [T.cast(-1000 if kind == "max" else 0, "int32")]), "reduce_scope"):
                T.evaluate(T.tvm_thread_allreduce(1, mine[0], True, out[0], tx if dim == 0 else ty))
            B[ty, tx] = out[0]

    return kernel


@pytest.mark.parametrize(
    ("nx", "ny", "dim", "kind"),
    [(32, 4, 0, "sum"), (32, 4, 1, "max"), (128, 1, 0, "sum"), (8, 12, 1, "bitxor"), (6, 16, 0, "max")],
)
def test_values_combined_along_a_thread_index(nx, ny, dim, kind):
    a = integers(1, (ny, nx), "int32")
    fn = {"sum": np.add, "max": np.maximum, "bitxor": np.bitwise_xor}[kind]
    everywhere(reduce_along(nx, ny, dim, kind), [a], np.broadcast_to(fn.reduce(a, 1 - dim, keepdims=True), a.shape))


def test_dp4a_adds_four_products():
    @T.prim_func
    def kernel(A: T.Tensor((32, 16), "int8"), B: T.Tensor((32, 16), "int8"), C: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            a = T.alloc_local((16,), "int8")
            b = T.alloc_local((16,), "int8")
            acc = T.alloc_local((1,), "int32")
            T.clear(acc)
            for v in T.vectorized(16):
                a[v] = A[tx, v]
                b[v] = B[tx, v]
            for k in T.serial(4):
                T.dp4a(a[k * 4], b[k * 4], acc[0])
            C[tx] = acc[0]

    a, b = integers(2, (32, 16), "int8", 127), integers(3, (32, 16), "int8", 127)
    everywhere(kernel, [a, b], (a.astype(np.int64) * b).sum(1))


def test_dp4a_begins_at_the_first_element_of_tiles_and_slices():
    @T.prim_func
    def kernel(A: T.Tensor((32, 8), "int8"), B: T.Tensor((32, 4), "int8"), C: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            a = T.alloc_local((8,), "int8")
            b = T.alloc_local((4,), "int8")
            acc = T.alloc_local((1,), "int32")
            acc[0] = tx
            for i in T.serial(8):
                a[i] = A[tx, i]
            for i in T.serial(4):
                b[i] = B[tx, i]
            T.dp4a(a, b, acc)
            T.dp4a(a[4:8], b[0], acc)
            C[tx] = acc[0]

    a, b = integers(2, (32, 8), "int8", 127), integers(3, (32, 4), "int8", 127)
    wide = a.astype(np.int64)
    everywhere(kernel, [a, b], np.arange(32) + ((wide[:, :4] + wide[:, 4:]) * b).sum(1))


@pytest.mark.parametrize("stages", [0, 2])
def test_tile_loaded_in_either_branch_and_used_after_it(stages):
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "float16"), K: T.Tensor((256, 64), "float16"), C: T.Tensor((2, 64, 64), "float32")
    ):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.clear(acc)
            for s in T.Pipelined(3, num_stages=stages):
                if s > bx:
                    T.copy(K[192:256, :], k)
                else:
                    T.copy(K[s * 64, 0], k)
                T.gemm(a, k, acc, transpose_B=True)
            T.copy(acc, C[bx, :, :])

    a, k = integers(4, (64, 64), "float16", 4), integers(5, (256, 64), "float16", 4)
    tiles = k.astype(np.int64).reshape(4, 64, 64)
    rows = [tiles[0] + 2 * tiles[3], tiles[0] + tiles[1] + tiles[3]]
    everywhere(kernel, [a, k], np.stack([a.astype(np.int64) @ r.T for r in rows]), NVIDIA)


def test_rows_of_a_table_and_a_length_read_at_run_time():
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "float16"),
        KV: T.Tensor((512, 64), "float16"),
        table: T.Tensor((2, 8), "int32"),
        lengths: T.Tensor((2,), "int32"),
        C: T.Tensor((2, 64, 64), "float32"),
    ):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            kv = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.clear(acc)
            trips = T.ceildiv(lengths[bx], 64)
            for s in T.Pipelined(trips, num_stages=2):
                last = trips - 1 - s
                start = table[bx, last] * 64
                T.copy(KV[start : start + 64, :], kv)
                T.gemm(a, kv, acc, transpose_B=True)
            T.copy(acc, C[bx, :, :])

    a, kv = integers(6, (64, 64), "float16", 4), integers(7, (512, 64), "float16", 4)
    table = np.array([[3, 1, 7, 5, 0, 0, 0, 0], [6, 2, 4, 0, 1, 0, 0, 0]], "int32")
    lengths = np.array([256, 300], "int32")
    pages = kv.astype(np.int64).reshape(8, 64, 64)
    sums = [pages[table[b, : -(-lengths[b] // 64)]].sum(0) for b in range(2)]
    everywhere(kernel, [a, kv, table, lengths], np.stack([a.astype(np.int64) @ s.T for s in sums]))


def test_first_row_from_a_variable_that_a_loop_finds():
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "float16"),
        KV: T.Tensor((512, 64), "float16"),
        starts: T.Tensor((8,), "int32"),
        C: T.Tensor((2, 64, 64), "float32"),
    ):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            kv = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            first = T.alloc_var("int32")
            first = 1 << 20
            for i in T.serial(4):
                first = T.min(first, starts[bx * 4 + i])
            T.copy(A, a)
            T.clear(acc)
            for s in T.Pipelined(3, num_stages=2):
                T.copy(KV[first + s * 64, 0], kv)
                T.gemm(a, kv, acc, transpose_B=True)
            T.copy(acc, C[bx, :, :])

    a, kv = integers(8, (64, 64), "float16", 4), integers(9, (512, 64), "float16", 4)
    starts = np.array([200, 77, 300, 129, 400, 411, 390, 505], "int32")
    rows = [kv[f : f + 192].astype(np.int64) for f in (77, 390)]
    rows[1] = np.pad(rows[1], ((0, 192 - len(rows[1])), (0, 0)))  # rows outside the tensor are 0
    truth = [a.astype(np.int64) @ r.reshape(3, 64, 64).sum(0).T for r in rows]
    kernels = everywhere(kernel, [a, kv, starts], np.stack(truth))
    assert [r.name for r in kernels["sm_90a"].body if hasattr(r, "warps")] == ["load", "compute"]


def test_accumulator_seen_with_three_dimensions_stays_in_its_registers():
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 4), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            seen = T.reshape(acc, (64, 4, 16))
            out = T.alloc_fragment((64, 4), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, acc, transpose_B=True, clear_accum=True)
            for i, j, k in T.Parallel(64, 4, 16):
                seen[i, j, k] = T.max(seen[i, j, k], 0) * (k + 1)
            T.reduce_sum(seen, out, dim=-1)
            T.copy(out, C)

    a, b = integers(10, (64, 64), "float16", 4), integers(11, (64, 64), "float16", 4)
    product = np.maximum(a.astype(np.int64) @ b.astype(np.int64).T, 0)
    kernels = everywhere(kernel, [a, b], (product.reshape(64, 4, 16) * np.arange(1, 17)).sum(-1), NVIDIA)
    for made in kernels.values():
        assert {b.name for b in made.buffers if b.space == "shared"} <= {"a", "b"}


def test_shared_and_global_memory_seen_with_other_shapes():
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float16"), C: T.Tensor((64, 32), "float16"), D: T.Tensor((8, 4, 64), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((32, 64), "float16")
            tall = T.view(a, (64, 32))
            flat = T.Tensor((32, 64), "float16", D.data)
            T.copy(A, a)
            for i, j in T.Parallel(64, 32):
                tall[i, j] = tall[i, j] + 1
            T.copy(tall, C)
            T.copy(a, flat)

    a = integers(12, (32, 64), "float16", 100)
    everywhere(kernel, [a], [a.reshape(64, 32) + 1, a.reshape(8, 4, 64) + 1])


def test_operand_tile_reused_as_another_dtype():
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
        D: T.Tensor((2, 16, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            half = T.view(b, (32, 64), "float32")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for s in T.Pipelined(2, num_stages=2):
                T.copy(A, a)
                T.copy(B, b)
                T.gemm(a, b, acc, transpose_B=True)
                for i, j in T.Parallel(32, 64):
                    half[i, j] = i * 64 + j + s
                T.copy(half[0:16, :], D[s, :, :])
            T.copy(acc, C)

    a, b = integers(13, (64, 64), "float16", 4), integers(14, (64, 64), "float16", 4)
    d = np.stack([np.arange(1024).reshape(16, 64) + s for s in range(2)])
    everywhere(kernel, [a, b], [2 * (a.astype(np.int64) @ b.astype(np.int64).T), d], NVIDIA)


def test_some_warps_meet_at_a_numbered_barrier():
    @T.prim_func
    def kernel(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            s = T.alloc_shared((128,), "int32")
            v = T.alloc_var("int32")
            s[tx] = A[tx]
            T.sync_threads()
            if tx < 64:
                for i in T.serial(6):
                    T.sync_threads(3, 64)
                    if tx < 64 - (1 << i):
                        v = s[tx] + s[tx + (1 << i)]
                    T.sync_threads(3, 64)
                    if tx < 64 - (1 << i):
                        s[tx] = v
            T.sync_threads()
            B[tx] = s[tx]

    a = integers(15, (128,), "int32")
    b = a.copy()
    b[:64] = np.cumsum(a[:64][::-1])[::-1]
    everywhere(kernel, [a], b, NVIDIA)


def test_a_fragment_in_local_scope_is_private():
    @T.prim_func
    def kernel(A: T.Tensor((4,), "int32"), B: T.Tensor((4, 64), "int32")):
        with T.Kernel(4, threads=64) as bx:
            at = T.alloc_fragment((1,), "int32", "local")
            total = T.alloc_fragment((64,), "int32")
            T.clear(total)
            at[0] = A[bx]
            while at[0] > 0:
                for i in T.Parallel(64):
                    total[i] += at[0] * i
                at[0] = at[0] - 2
            T.copy(total, B[bx, :])

    a = np.array([5, 0, 8, 1], "int32")
    sums = [sum(range(n, 0, -2)) for n in a]
    everywhere(kernel, [a], np.outer(sums, np.arange(64)))


@pytest.mark.parametrize(("channels", "stride", "dilation", "pad"), [(32, 1, 1, 1), (16, 2, 1, 0), (8, 1, 2, 2)])
def test_convolution_by_columns_of_the_image(channels, stride, dilation, pad):
    n, height, width, filters, taps = 2, 9, 7, 32, 3
    high = (height + 2 * pad - dilation * (taps - 1) - 1) // stride + 1
    wide = (width + 2 * pad - dilation * (taps - 1) - 1) // stride + 1
    depth = taps * taps * channels

    @T.prim_func
    def kernel(
        X: T.Tensor((n, height, width, channels), "float16"),
        W: T.Tensor((taps, taps, channels, filters), "float16"),
        Y: T.Tensor((n, high, wide, filters), "float32"),
    ):
        with T.Kernel(T.ceildiv(n * high * wide, 64), threads=128) as by:
            x = T.alloc_shared((64, 32), "float16")
            w = T.alloc_shared((32, filters), "float16")
            acc = T.alloc_fragment((64, filters), "float32")
            flat = T.Tensor((depth, filters), "float16", W.data)
            out = T.Tensor((n * high * wide, filters), "float32", Y.data)
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(depth, 32), num_stages=2):
                T.im2col(X, x, by, k, taps, stride, dilation, pad)
                T.copy(flat[k * 32, 0], w)
                T.gemm(x, w, acc)
            T.copy(acc, out[by * 64, 0])

    x = integers(16, (n, height, width, channels), "float16", 3)
    w = integers(17, (taps, taps, channels, filters), "float16", 3)
    padded = np.pad(x.astype(np.int64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    y = np.zeros((n, high, wide, filters), np.int64)
    for a in range(taps):
        for b in range(taps):
            rows = slice(a * dilation, a * dilation + stride * (high - 1) + 1, stride)
            columns = slice(b * dilation, b * dilation + stride * (wide - 1) + 1, stride)
            y += padded[:, rows, columns] @ w[a, b].astype(np.int64)
    everywhere(kernel, [x, w], y, NVIDIA)


@pytest.mark.parametrize("op", ["sum", "max"])
def test_reducers_gather_over_trips_and_threads(op):
    @T.prim_func
    def kernel(A: T.Tensor((32, 96), "int32"), R: T.Tensor((32,), "int32"), C: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=64):
            rows = T.alloc_reducer(32, "int32", op=op)
            columns = T.alloc_reducer((1, 32), "int32", op=op)
            T.reducer_init(rows)
            T.reducer_init(columns, 7)
            for s in T.serial(3):
                for i, j in T.Parallel(32, 32):
                    if op == "sum":
                        rows[i] += A[i, s * 32 + j]
                    else:
                        rows[i] = T.max(rows[i], A[i, s * 32 + j])
                    T.reducer_update(columns[0, j], A[i, s * 32 + j] * 2)
            T.finalize_reducer(rows)
            T.finalize_reducer(columns)
            T.copy(rows, R)
            T.copy(columns[0, :], C)

    a = integers(18, (32, 96), "int32")
    fn = {"sum": np.add, "max": np.maximum}[op]
    columns = fn.reduce(2 * a.reshape(32, 3, 32), (0, 1))
    everywhere(kernel, [a], [fn.reduce(a, 1), fn(columns, 7)], NVIDIA)


def test_a_reducer_of_one_element():
    @T.prim_func
    def kernel(A: T.Tensor((48, 40), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=128):
            total = T.alloc_reducer(1, "int32")
            T.clear(total)
            for i, j in T.Parallel(48, 40):
                if A[i, j] > 0:
                    total[0] += A[i, j]
            T.finalize_reducer(total, None)
            T.copy(total, B)

    a = integers(19, (48, 40), "int32")
    everywhere(kernel, [a], [a[a > 0].sum().reshape(1)], NVIDIA)


def test_tensors_at_addresses_from_a_table():
    @T.prim_func
    def kernel(As: T.Tensor((4,), T.ptr), B: T.Tensor((4, 64, 64), "float32")):
        with T.Kernel(4, threads=128) as bx:
            a = T.alloc_shared((64, 32), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            A = T.make_tensor(As[bx], (64, 128), "float16")
            T.clear(acc)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.gemm(a, a, acc, transpose_B=True)
            T.copy(acc, B[bx, :, :])

    for target in NVIDIA:
        made = lowered(kernel, target)
        assert any("cp.async" in d.chosen for d in made.decisions)
        built(made, target)
    with pytest.raises(SimulationError, match="address"):
        tile.run(kernel.kernel, [np.zeros(4, np.int64), np.zeros((4, 64, 64), np.float32)])


def test_clusters_are_for_targets_that_have_them() -> None:
    @T.prim_func
    def k(A: T.Tensor((1024,), "float32")):
        with T.ClusterKernel(8, cluster_dims=(2,), threads=128) as bx:
            a = T.alloc_fragment((128,), "float32")
            T.copy(A[bx * 128], a)
            T.copy(a, A[bx * 128])

    hopper = Target.of("sm_90a")
    assert emit(run_passes(k.kernel, hopper), hopper).cluster == (2, 1, 1)
    for name in ("sm_80", "gfx942"):
        with pytest.raises(TargetError, match=f"{name} has no clusters"):
            run_passes(k.kernel, Target.of(name))


def test_halves_of_an_accumulator_stored_one_after_the_other():
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            half = T.alloc_shared((32, 64), "float32")
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, acc, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
            for s in range(2):
                for i, j in T.Parallel(64, 64):
                    if i < 32:
                        half[i, j] = acc[i + s * 32, j]
                T.copy(half, C[s * 32, 0])

    a, b = integers(20, (64, 64), "float16", 4), integers(21, (64, 64), "float16", 4)
    kernels = everywhere(kernel, [a, b], a.astype(np.int64) @ b.astype(np.int64).T, NVIDIA)
    assert {b.name for b in kernels["sm_80"].buffers if b.space == "shared"} == {"a", "b", "half"}


@pytest.mark.parametrize("first", ["shared", "fragment"])
def test_products_of_eight_bit_floats_on_every_target(first):
    alloc = T.alloc_shared if first == "shared" else T.alloc_fragment

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "float8_e4m3fn"), B: T.Tensor((64, 64), "float8_e5m2"), C: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=128):
            a = alloc((64, 64), "float8_e4m3fn")
            b = T.alloc_shared((64, 64), "float8_e5m2")
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, acc, transpose_B=True, clear_accum=True)
            T.copy(acc, C)

    a = integers(22, (64, 64), "float32", 8).astype(ml_dtypes.float8_e4m3fn)
    b = integers(23, (64, 64), "float32", 4).astype(ml_dtypes.float8_e5m2)
    kernels = everywhere(kernel, [a, b], a.astype(np.int64) @ b.astype(np.int64).T, NVIDIA)
    assert any("mma m16n8k16 of float16" in d.chosen for d in kernels["sm_80"].decisions)


def test_a_fragment_of_thread_level_code_is_each_threads_own():
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            mine = T.alloc_fragment((2, 2), "int32")
            for r in T.serial(4):
                mine[r // 2, r % 2] = A[r, 63 - tx]
            total = T.alloc_var("int32", 0)
            for r in T.serial(4):
                total += mine[r // 2, r % 2] * (r + 1)
            B[tx] = total

    a = integers(24, (4, 64), "int32")
    everywhere(kernel, [a], (a[:, ::-1] * np.arange(1, 5)[:, None]).sum(0), NVIDIA)


def test_a_long_walk_along_k_from_shared_tiles():
    @T.prim_func
    def kernel(A: T.Tensor((32, 320), "float16"), B: T.Tensor((64, 320), "float16"), C: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((32, 320), "float16")
            b = T.alloc_shared((64, 320), "float16")
            acc = T.alloc_fragment((32, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, acc, transpose_B=True, clear_accum=True)
            T.copy(acc, C)

    a, b = integers(25, (32, 320), "float16", 3), integers(26, (64, 320), "float16", 3)
    kernels = everywhere(kernel, [a, b], a.astype(np.int64) @ b.astype(np.int64).T)
    assert all("for kc in" in show(k) for k in kernels.values())


@pytest.mark.parametrize("clear", [True, False])
@pytest.mark.parametrize("propagate", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_nan_in_the_largest_absolute_value(dim, propagate, clear):
    @T.prim_func
    def kernel(A: T.Tensor((16, 64), "float16"), B: T.Tensor((64 if dim == 0 else 16,), "float16")):
        with T.Kernel(1, threads=64):
            a = T.alloc_fragment((16, 64), "float16")
            b = T.alloc_fragment((64 if dim == 0 else 16,), "float16")
            T.copy(A, a)
            T.fill(b, 12)
            T.reduce_absmax(a, b, dim=dim, clear=clear, nan_propagate=propagate)
            T.copy(b, B)

    a = integers(4, (16, 64), "float16", 20)
    a[3, 5] = a[9, 60] = np.nan
    each = np.maximum if propagate else np.fmax
    want = each.reduce(np.abs(a), dim)
    everywhere(kernel, [a], want if clear else each(want, np.float16(12)))


@pytest.mark.parametrize("threads", [None, 64])
def test_a_launch_without_a_grid_is_one_block(threads):
    @T.prim_func
    def kernel(A: T.Tensor((64, 8), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(threads=threads):
            a = T.alloc_fragment((64, 8), "int32")
            b = T.alloc_fragment((8,), "int32")
            T.copy(A, a)
            T.reduce_sum(a, b, dim=0)
            T.copy(b, B)

    a = integers(5, (64, 8), "int32")
    everywhere(kernel, [a], a.sum(0, dtype=np.int32))


def test_a_function_of_no_kernel_is_told_when_it_is_compiled():
    @T.prim_func
    def kernel(B: T.Tensor((8,), "int32")):
        pass

    with pytest.raises(LanguageError, match="has no `with"):
        tw.compile(kernel, target="cpu")
