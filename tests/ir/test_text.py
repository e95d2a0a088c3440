"""The text form: like the user's code at tile level, roles and channels at planned level, instructions below."""

from __future__ import annotations

import ast

import pytest

from tests.ir.samples import Gemm16, ThreadGemm, at, vector_add
from tileworkbench.ir.dtype import FLOAT16, FLOAT32
from tileworkbench.ir.expr import (
    Buffer,
    Call,
    Cast,
    Load,
    Select,
    Var,
    binary,
    compare,
    const,
    logical,
    logical_not,
    unary,
)
from tileworkbench.ir.instr import Addr, AtomicMem, LdMatrix, Reg, Shuffle, Sync, Vote
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.stmt import ONE, ZERO, Break, For, If, Let, Region, Store, While
from tileworkbench.ir.text import lines, show, show_expr, show_stmt
from tileworkbench.ops.copy import Copy

X, Y, Z = Var("x"), Var("y"), Var("z")

TILE = """@T.prim_func
def gemm(
    A: T.Tensor((1024, 512), "float16"),
    B: T.Tensor((512, 256), "float16"),
    C: T.Tensor((1024, 256), "float16"),
):
    with T.Kernel(2, 8, threads=128) as (bx, by):
        # returns C
        A_shared = T.alloc_shared((128, 64), "float16")
        B_shared = T.alloc_shared((64, 128), "float16")
        C_local = T.alloc_fragment((128, 128), "float32")
        T.clear(C_local)
        for k in T.Pipelined(8, num_stages=3):
            T.copy(A[by * 128, k * 64], A_shared)
            T.copy(B[k * 64, bx * 128], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        for i, j in T.Parallel(128, 128):
            C_local[i, j] = T.max(C_local[i, j], 0.0)
        T.copy(C_local, C[by * 128, bx * 128])
"""

PLANNED = """        with role("compute", warps=(0, 4), registers=240):
            issue(T.clear(C_local), "registers")
            for k in T.serial(8):
                ring.wait()
                issue(T.gemm(A_shared, B_shared, C_local), "wgmma")
                complete(T.gemm(A_shared, B_shared, C_local), "wgmma")
                ring.release()
            for i, j in T.Parallel(128, 128):  # issue, registers
                C_local[i, j] = T.max(C_local[i, j], 0.0)
            issue(T.copy(C_local, C[by * 128, bx * 128]), "st.global")
        with role("load", warps=4, registers=24):
            for k_1 in T.serial(8):
                ring.acquire()
                issue(T.copy(A[by * 128, k_1 * 64], A_shared), "tma")
                issue(T.copy(B[k_1 * 64, bx * 128], B_shared), "tma")
                ring.commit()
"""


def test_tile_level_reads_like_the_users_code():
    assert show(Gemm16().tile()) == TILE


def test_planned_level_shows_roles_channels_layouts_and_versions():
    text = show(Gemm16(Var("M")).planned())
    assert text.startswith('M = T.dynamic("M")\n@T.prim_func\n')
    assert text.endswith(PLANNED)
    for line in (
        "with T.Kernel(2, (M + 127) // 128, threads=128) as (bx, by):",
        "# planned level: 128 compute threads, launches 256",
        "# A_shared: (128, 64) float16, 3 versions, swizzle 128",
        "# ring: A_shared, B_shared x 3, load -> compute, completes by bytes (32768 a use)",
    ):
        assert f"        {line}\n" in text or f"    {line}\n" in text


def test_thread_level_shows_places_and_reasons():
    text = show(ThreadGemm().kernel())
    for line in (
        'B_shared = shared(24576, "float16")  # at 49152',
        "A_map = tensor_map(A, dims=(512, 1024), strides=(1024,), box=(64, 128), swizzle=128)",
        'sync("block", id=0, threads=256)  # barriers before use',
        "bar_arrive(full[k % 3], bytes=32768)  # A and B of trip k",
        'tma_load(A_shared + k % 3 * 8192, "A_map", (k * 64, by * 128), full[k % 3], 16384)',
        "store(C + role_thread * 256 + n * 4, acc[n * 4 : n * 4 + 4])",
    ):
        assert line in text
    assert "b[0:4] = load(B + bx * 512 + thread * 4, pred=bx * 512 + thread * 4 < 4096, fill=0.0)" in show(vector_add())


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (binary("sub", X, binary("sub", Y, Z)), "x - (y - z)"),
        (binary("sub", binary("sub", X, Y), Z), "x - y - z"),
        ((X + Y) * Z // 4, "(x + y) * z // 4"),
        (X * (Y % 4), "x * (y % 4)"),
        ((X & 3) ^ (Y << 2), "x & 3 ^ y << 2"),
        (unary("neg", X + 1) * 2, "-(x + 1) * 2"),
        (binary("truncdiv", X, Y), "T.truncdiv(x, y)"),
        (logical_not(logical("land", X < 3, Y >= 0)), "not (x < 3 and y >= 0)"),
        (logical("lor", logical("land", X < 3, Y > 2), compare("eq", Z, 0)), "x < 3 and y > 2 or z == 0"),
        (compare("eq", X < 3, Y < 3), "(x < 3) == (y < 3)"),
        (Select(X < 3, const(1.5), const(float("-inf"))), 'T.if_then_else(x < 3, 1.5, -T.infinity("float32"))'),
        (Cast(X, dtype=FLOAT16), 'T.cast(x, "float16")'),
        (Call("exp2", (Var("f", FLOAT32),)), "T.exp2(f)"),
        (X + -3, "x + -3"),
        (const(-3) - X, "-3 - x"),
    ],
)
def test_expressions(made, text):
    assert show_expr(made) == text


def test_text_of_integer_expressions_means_the_same_to_python():
    e = (X + 3) * 5 % 7 - (Y // 2 - (X << 1)) + unary("not", X & 6) * -2
    text = show_expr(e)
    names = {"x": 11, "y": 9}
    x, y = 11, 9
    assert eval(text, names) == (x + 3) * 5 % 7 - (y // 2 - (x << 1)) + (~(x & 6)) * -2


def test_equal_names_get_suffixes_in_order_of_appearance():
    body = (Let(Var("x"), const(1)), Let(Var("x"), const(2)), Let(Var("x_1"), const(3)))
    assert show_stmt(body) == "x = 1\nx_1 = 2\nx_1_1 = 3"


def test_statements():
    b = Buffer("s", (1,), FLOAT32, "var")
    body = If(
        X < 3,
        (Store(b, (ZERO,), Load(b, (ZERO,)) + 1.0),),
        (If(X < 5, (Break(),), (While(X < 9, ()),)),),
    )
    assert show_stmt(body) == (
        "if x < 3:\n    s = s + 1.0\nelif x < 5:\n    break\nelse:\n    while x < 9:\n        pass"
    )
    assert show_stmt(For(Y, ONE, X, const(2), (Break(),), "unroll")) == "for y in T.unroll(1, x, step=2):\n    break"


def test_instructions_of_several_spellings():
    r, s = Buffer("r", (16,), FLOAT16, "reg"), Buffer("s", (256,), FLOAT16, "shared")
    assert show_stmt(LdMatrix(Reg(r, ZERO, 8), Addr(s, X * 8), 4, True)) == "r[0:8] = ldmatrix_x4_trans(s + x * 8)"
    assert show_stmt(Shuffle(Reg(r, ZERO), Reg(r, ONE), "xor", const(4))) == "r[0] = shfl_xor(r[1], 4)"
    assert show_stmt(Vote(Reg(r, ZERO), "any", X < 3)) == "r[0] = any(x < 3)"
    add = AtomicMem("add", Addr(s, ZERO), Reg(r, ZERO), old=Reg(r, ONE))
    assert show_stmt(add) == "r[1] = atomic_add(s, r[0])"
    assert show_stmt(Sync("warp", reason="s: write, read")) == 'sync("warp")  # s: write, read'


def test_copies_between_parts_keep_their_extents():
    a, b = Buffer("a", (64, 64), FLOAT16, "shared"), Buffer("b", (64, 64), FLOAT16, "shared")
    move = Copy(Region(a, (ZERO, X), (64, 16)), Region(b, (ONE, ZERO), (1, 16)))
    assert show_stmt(move) == "T.copy(a[0:64, x : x + 16], b[1, 0:16])"


def test_lines_carry_places_and_statements():
    k = Gemm16().tile()
    made = lines(k)
    copy = next(line for line in made if line.text.startswith("T.copy(A"))
    assert copy.loc == at(8) and copy.indent == 3 and copy.node is k.body[4].body[0]
    assert "".join(f"{line}\n" for line in made) == show(k)


@pytest.mark.parametrize("kernel", [Gemm16().tile(), Gemm16().planned(), ThreadGemm().kernel(), vector_add()])
def test_text_is_python_and_the_same_every_time(kernel):
    ast.parse(show(kernel))
    assert show(kernel) == show(kernel)


def test_an_empty_kernel_and_thread_variables():
    tx = Var("tx")
    a = Buffer("A", (4,), FLOAT32)
    k = Kernel("f", (a,), (1,), (), 32, (), thread_vars=(tx,))
    assert "get_thread_binding" not in show(k) and show(k).endswith("pass\n")
    used = k.with_(body=(Store(a, (tx,), const(1.0)),))
    assert "tx = T.get_thread_binding(0)\n        A[tx] = 1.0\n" in show(used)
