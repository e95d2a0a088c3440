"""What each statement and expression of the language becomes: statements in, the kernel's own text out."""

from __future__ import annotations

import textwrap

import pytest

import tileworkbench.language as T
from tileworkbench.errors import TileError

from .cells import body, build

CASES = {
    "range": ("for i in range(2, 10, 3):\n    I[i] = i", "for i in T.serial(2, 10, step=3):\n    I[i] = i"),
    "range downwards": ("for i in range(9, 0, -2):\n    I[i] = i", "for i in T.serial(9, 0, step=-2):\n    I[i] = i"),
    "symbolic range": ("for i in range(n):\n    I[i] += 1", "for i in T.serial(n):\n    I[i] = I[i] + 1"),
    "grid": (
        "for i, j in T.grid(4, 5):\n    A[i, j] = 0",
        "for i in T.serial(4):\n    for j in T.serial(5):\n        A[i, j] = 0.0",
    ),
    "unroll": ("for i in T.unroll(4):\n    A[i, i] = i", 'for i in T.unroll(4):\n    A[i, i] = T.cast(i, "float32")'),
    "vectorized": ("for i in T.vectorized(4):\n    A[0, i] = 1.5", "for i in T.vectorized(4):\n    A[0, i] = 1.5"),
    "let": (
        "for i, j in T.Parallel(64, 64):\n    x = A[i, j] * 2\n    B[i, j] = T.if_then_else(x > 0, x, -x)",
        "for i, j in T.Parallel(64, 64):\n    x = A[i, j] * 2.0\n    B[i, j] = T.if_then_else(x > 0.0, x, -x)",
    ),
    "rebinding makes a new let": (
        "x = n + 1\ny = x\nx = x * 2\nI[0] = x + y",
        "x = n + 1\nx_1 = x * 2\nI[0] = x_1 + x",
    ),
    "nested parallel loops are one": (
        "for i in T.Parallel(4):\n    for j, k in T.Parallel(2, 8):\n        A[i, j * 8 + k] = 0",
        "for i, j, k in T.Parallel(4, 2, 8):\n    A[i, j * 8 + k] = 0.0",
    ),
    "let with a type": ("x: T.float32 = n\nA[0, 0] = x", 'x = T.cast(n, "float32")\nA[0, 0] = x'),
    "python values": ("x = 3\ny = (x, 'word')\nI[y[0]] = x * 2", "I[3] = 6"),
    "alias": ("C = A\nC[0, 1] = n", 'A[0, 1] = T.cast(n, "float32")'),
    "variable": (
        "v = T.alloc_var('int32', init=3)\ny = v\nv = v + y\nv += 1\nv = 7\nI[v] = v",
        'v = T.alloc_var("int32")\nv = 3\ny = v\nv = v + y\nv = v + 1\nv = 7\nI[v] = v',
    ),
    "variable declared in a loop": (
        "for i in range(4):\n    v = T.alloc_var('int32')\n    v += i",
        'v = T.alloc_var("int32")\nv = 0\nfor i in T.serial(4):\n    v = v + i',
    ),
    "swap of variables": (
        "v = T.alloc_var('int8', 3)\nw = T.alloc_var('int8', 5)\nv, w = w, v",
        """v = T.alloc_var("int8")\nv = 3\nw = T.alloc_var("int8")
w = 5\nvalue = w\nvalue_1 = v\nv = value\nw = value_1""",
    ),
    "swap of names": ("a, (b, c) = n, (n + 1, 2)\na, b = b, a\nI[a] = b + c", "b = n + 1\nI[b] = n + 2"),
    "chained assignment": ("a = b = n * 3\nI[a] = b", "value = n * 3\nI[value] = value"),
    "if": (
        "if n > 3 and n < 10 or not n == 5:\n    I[0] = 1\nelse:\n    I[0] = 2",
        "if n > 3 and n < 10 or not n == 5:\n    I[0] = 1\nelse:\n    I[0] = 2",
    ),
    "elif": (
        "if n > 3:\n    I[0] = 1\nelif n > 2:\n    I[0] = 2\nelse:\n    I[0] = 3",
        "if n > 3:\n    I[0] = 1\nelif n > 2:\n    I[0] = 2\nelse:\n    I[0] = 3",
    ),
    "branch decided while compiling": ("if 3 > 2:\n    I[0] = 1\nelse:\n    I[0] = oops", "I[0] = 1"),
    "names set in a branch decided while compiling": ("if True:\n    x = 4\nI[0] = x", "I[0] = 4"),
    "conditional expressions": (
        "I[0] = 1 if n > 2 else 3\nI[1] = 1 if False else 3",
        "I[0] = T.if_then_else(n > 2, 1, 3)\nI[1] = 3",
    ),
    "chained comparison": (
        "I[0] = T.cast(0 < n <= I[2] < 9, 'int32')",
        'I[0] = T.cast(0 < n and n <= I[2] and I[2] < 9, "int32")',
    ),
    "python and": ("x = None\nif x is not None and x > n:\n    I[0] = 1\nI[1] = 0", "I[1] = 0"),
    "while": (
        (
            "v = T.alloc_var('int32', init=0)\nwhile v < n:\n    v += 1\n    if v == 3:\n        continue\n"
            "    if v == 4:\n        break"
        ),
        (
            'v = T.alloc_var("int32")\nv = 0\nwhile v < n:\n    v = v + 1\n    if v == 3:\n        continue\n'
            "    if v == 4:\n        break"
        ),
    ),
    "assert": ("assert n > 3, 'bad n'\nassert 1 < 2", 'T.device_assert(n > 3, "bad n")'),
    "negative index": ("I[-1] = I[-2]", "I[63] = I[62]"),
    "unit slice is an element": ("x = I[3:4] + 1\nI[0:1] = x", "x = I[3] + 1\nI[0] = x"),
    "comprehension": ("xs = [I[i] for i in range(3)]\nI[3] = sum(xs)", "I[3] = I[0] + I[1] + I[2]"),
    "lambda": ("f = lambda a, b: a * b + n\nI[0] = f(bx, 2)", "I[0] = bx * 2 + n"),
    "nested def is inlined": (
        "def twice(x):\n    y = x + x\n    return y\nI[0] = twice(n)\nI[1] = twice(3)",
        "y = n + n\nI[0] = y\nI[1] = 6",
    ),
    "variables in a list": (
        "vs = [T.alloc_var('int32', init=i) for i in range(2)]\nvs[0] = 4\nI[0] = vs[1] + vs[0]",
        'vs = T.alloc_var("int32")\nvs = 0\nvar = T.alloc_var("int32")\nvar = 1\nvs = 4\nI[0] = var + vs',
    ),
    "metadata": (
        (
            "s = T.alloc_shared(A.shape, A.dtype)\nif A.dtype == 'float32' and s.scope() == 'shared.dyn':\n"
            "    T.fill(s, len(A.shape))"
        ),
        's = T.alloc_shared((64, 64), "float32")\nT.fill(s, 2.0)',
    ),
    "threads": ("t = T.get_thread_binding()\nI[t] = t", "tx = T.get_thread_binding(0)\nI[tx] = tx"),
    "floor division": ("I[0] = (n + 3) // 4 % 5", "I[0] = (n + 3) // 4 % 5"),
    "true division": (
        "A[0, 0] = n / 2",
        'A[0, 0] = T.cast(n, "float32") / 2.0',
    ),
    "casts": ("A[0, 0] = T.float16(n)", 'A[0, 0] = T.cast(T.cast(n, "float16"), "float32")'),
    "rounded constants": ("A[0, 0] = T.float16(1.1)", "A[0, 0] = 1.099609375"),
    "folding": ("I[0] = T.max(2, 3) + T.ceildiv(7, 2) + T.floormod(-1, 4)", "I[0] = 10"),
    "mathematics": (
        "A[0, 0] = T.exp2(n) + T.infinity('float32') + T.rsqrt(A[0, 1])",
        'A[0, 0] = T.exp2(T.cast(n, "float32")) + T.infinity("float32") + T.rsqrt(A[0, 1])',
    ),
    "reinterpret": ("I[0] = T.reinterpret(A[0, 0], 'int32')", 'I[0] = T.reinterpret(A[0, 0], "int32")'),
    "clamp": ("I[0] = T.clamp(n, 0, 9)", "I[0] = T.min(T.max(n, 0), 9)"),
    "effects": (
        "T.print(n, 'n is')\nT.sync_threads()\nx = T.shfl_xor(n, 1)\nI[0] = x",
        'T.print("n is: ", n)\nT.sync_threads()\nx = T.shfl_xor(n, 1, 32, 4294967295)\nI[0] = x',
    ),
    "atomics": (
        "o = T.atomic_add(I[0], 1, return_prev=True)\nI[1] = o\nT.atomic_max(A[0, 0], B[0:64, :])",
        (
            'old = T.alloc_var("int32")\nold = T.atomic_add(I[0], 1, return_prev=True)\no = old\nI[1] = o\n'
            "T.atomic_max(A, B)"
        ),
    ),
    "persistent": (
        "for i, j in T.Persistent([4, 6], 3, bx):\n    A[i, j] = 0",
        (
            "for wave in T.Persistent(8):\n    tile = wave * 3 + bx\n    if tile < 24:\n        i = tile % 24 // 6\n"
            "        j = tile // 24 * 6 + tile % 24 % 6\n        A[i, j] = 0.0"
        ),
    ),
    "reductions": (
        (
            "r = T.alloc_fragment((64,), 'float32')\nf = T.alloc_fragment((64, 64), 'float32')\n"
            "T.reduce_sum(f, r, dim=1, clear=False)\nT.reduce_max(f, r, dim=0)\nT.cumsum(f, dim=1)"
        ),
        (
            'r = T.alloc_fragment((64,), "float32")\nf = T.alloc_fragment((64, 64), "float32")\n'
            "T.reduce_sum(f, r, dim=1, clear=False)\nT.reduce_max(f, r, dim=0)\nT.cumsum(f, f, dim=1)"
        ),
    ),
    "a Python string is a statement": ("'words'\nI[0] = 1", "I[0] = 1"),
}


@pytest.mark.parametrize("name", CASES)
def test_statements(name):
    text, want = CASES[name]
    assert "\n".join(body(text)) == textwrap.dedent(want)


def test_names_live_as_long_as_their_block():
    kernel = build("for i in range(3):\n    x = n + i\n    I[i] = x\nfor i in range(3):\n    x = n - i\n    I[i] = x")
    first, second = kernel.body
    assert first.var is not second.var and (first.var.name, second.var.name) == ("i", "i")
    assert first.body[0].var.name == second.body[0].var.name == "x"


def test_a_rebinding_that_changes_nothing_is_no_mistake():
    assert body("x = 3\nif n > 2:\n    x = 3\nI[0] = x") == ["I[0] = 3"]
    assert body("for i in range(2):\n    t = A\n    T.clear(t)\nT.clear(A)")[-1] == "T.clear(A)"


def test_a_temporary_may_be_set_in_every_branch():
    lines = body(
        "if n > 2:\n    t = n + 1\n    I[0] = t\nelse:\n    t = n + 2\n    I[0] = t\nif n > 5:\n    t = 3\n    I[1] = t"
    )
    assert lines[:3] == ["if n > 2:", "    t = n + 1", "    I[0] = t"] and lines[-1] == "    I[1] = 3"


def test_warp_groups():
    lines = body(
        "bar = T.alloc_barrier([128, 1])\nT.barrier_arrive(bar[0])\nT.barrier_wait(bar[n % 2], n % 2)\n"
        "with T.ws(1):\n    T.set_max_nreg(240, 1)\n    T.clear(A)",
        threads=256,
    )
    assert lines[1:3] == ["T.mbarrier_arrive(bar[0])", "T.mbarrier_wait_parity(bar[n % 2], n % 2)"]
    assert lines[3] == "with T.ws(1):" and lines[5] == "    T.clear(A)"


def test_a_tensor_in_global_memory_stays_row_major_and_says_so():
    """The layout's function is not even asked: over a tensor of 2³³ elements that would take for ever."""

    @T.prim_func
    def kernel(A: T.Tensor((2**18, 2**15), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float32")
            T.annotate_layout({A: T.Layout(A.shape, lambda i, j: [j, i])})
            T.copy(A[0:64, 0:64], s)
            T.copy(s, B)

    assert kernel.kernel.notes == ("T.annotate_layout: `A` is a tensor in global memory and stays row-major",)


def test_a_layout_function_is_wrong_at_its_line():
    with pytest.raises(TileError, match="negative"):

        @T.prim_func
        def kernel(A: T.Tensor((8, 8), "float32")):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((8, 8), "float32")
                T.annotate_layout({s: T.Layout((8, 8), lambda i, j: [i - 1, j])})
                T.copy(A, s)
