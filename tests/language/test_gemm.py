"""Reading whole kernels: the pieces stand where the user wrote them, with the right extents."""

from __future__ import annotations

import tileworkbench.language as T
from tileworkbench.ir.expr import Binary, Const, same
from tileworkbench.ir.stmt import Alloc, For, Store
from tileworkbench.ops.copy import Copy
from tileworkbench.ops.fill import Fill
from tileworkbench.ops.gemm import Gemm
from tileworkbench.ops.parallel import Parallel


def make(M, N, K, block_M=128, block_N=64, block_K=32, dtype="float16"):
    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.use_swizzle(10)
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, ko * block_K], A_s)
                T.copy(B[ko * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            for i, j in T.Parallel(block_M, block_N):
                C_l[i, j] = T.max(C_l[i, j], 0)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return gemm


def test_gemm_is_read_statement_by_statement():
    kernel = make(1000, 512, 768).kernel
    assert kernel.name == "gemm" and [p.name for p in kernel.params] == ["A", "B", "C"]
    assert (
        kernel.grid == (8, 8)
        and kernel.threads == 128
        and kernel.thread_shape == (128,)
        and len(kernel.thread_vars) == 3
    )
    assert [v.name for v in kernel.block_vars] == ["bx", "by"]
    assert kernel.attrs["swizzle"] == (10, "row")
    kinds = [type(s) for s in kernel.body]
    assert kinds == [Alloc, Alloc, Alloc, Fill, For, Parallel, Copy]
    a_s, b_s, c_l = (s.buffer for s in kernel.body[:3])
    assert (a_s.name, a_s.space, a_s.shape) == ("A_s", "shared", (128, 32))
    assert (b_s.name, c_l.name, c_l.space, c_l.dtype.name) == ("B_s", "C_l", "fragment", "float32")
    loop = kernel.body[4]
    assert loop.kind == "pipelined" and loop.attr("num_stages") == 3 and loop.stop.value == 24
    load_a, load_b, product = loop.body
    by, ko = kernel.block_vars[1], loop.var
    assert load_a.src.extents == (128, 32) and load_a.dst.buffer is a_s
    assert same(load_a.src.starts[0], by * 128) and same(load_a.src.starts[1], ko * 32)
    assert load_b.src.extents == (32, 64)
    assert isinstance(product, Gemm) and product.mnk == (128, 64, 32) and product.clear.value is False
    relu = kernel.body[5]
    assert relu.extents == (128, 64) and isinstance(relu.body[0], Store)
    value = relu.body[0].value
    assert isinstance(value, Binary) and value.op == "max" and isinstance(value.b, Const)
    assert kernel.body[6].dst.extents == (128, 64) and kernel.body[6].dst.buffer is kernel.params[2]


def test_every_node_has_the_place_in_this_file():
    kernel = make(128, 64, 32).kernel
    loop = kernel.body[4]
    line = loop.body[0].loc.line
    assert loop.body[0].loc.source_line().strip() == "T.copy(A[by * block_M, ko * block_K], A_s)"
    start = loop.body[0].src.starts[0].loc
    assert start.line == line and start.source_line()[start.col : start.end_col] == "by * block_M"
    assert loop.loc.source_line()[loop.loc.col : loop.loc.end_col] == (
        "for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3)"
    )


def test_add():
    @T.prim_func
    def add(A: T.Tensor((100,), "float32"), B: T.Tensor((100,), "float32"), C: T.Tensor((100,), "float32")):
        with T.Kernel(T.ceildiv(100, 64), threads=64) as bx:
            for i in T.Parallel(64):
                C[bx * 64 + i] = A[bx * 64 + i] + B[bx * 64 + i]

    kernel = add.kernel
    assert kernel.grid == (2,)
    (loop,) = kernel.body
    (store,) = loop.body
    assert loop.extents == (64,) and store.buffer.name == "C"
    assert same(store.indices[0], kernel.block_vars[0] * 64 + loop.vars[0])
    assert store.value.op == "add" and store.value.a.buffer.name == "A"
