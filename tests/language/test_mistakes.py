"""Every mistake in a kernel's text is one error that names the span, the rule and the fix."""

from __future__ import annotations

import pytest

import tileworkbench.language as T
from tileworkbench.errors import TileError

from .cells import marked, run_cell

HEAD = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float32"), I: T.Tensor((64,), "int32"), n: T.int32):
    with T.Kernel(4, threads=128) as bx:
"""

# name, statements of the body (the span that the error names is «marked»), code, part of the message
IN_BODY = [
    ("try", "«try:\n    I[0] = 1\nexcept ValueError:\n    pass»", "language", "`try` in a kernel"),
    ("yield", "«yield n»", "language", "`yield` in a kernel"),
    ("global", "«global z»", "language", "`global` in a kernel"),
    ("starred", "a, «*b» = 1, 2, 3", "language", "starred target"),
    ("list target", "«[a, b]» = 1, 2", "language", "targets are names or tuples of names"),
    ("attribute", "«A.x» = 1", "language", "not attributes"),
    ("for else", "for i in range(4):\n    I[i] = 1\nelse:\n    «I[0] = 2»", "language", "loops have no else"),
    ("while else", "while n < 4:\n    I[0] = 1\nelse:\n    «I[0] = 2»", "language", "loops have no else"),
    ("for list", "«for i in [1, 2]»:\n    I[i] = 0", "language", "loops in a kernel run over range"),
    ("for zip", "«for a, b in zip((1,), (2,))»:\n    I[a] = b", "language", "a `for` over a zip"),
    ("for buffer", "«for x in I»:\n    pass", "language", "the whole tile `I`"),
    ("targets", "«for i in T.Parallel(4, 4)»:\n    pass", "language", "yields 2 indexes, the loop names 1"),
    ("targets 2", "«for i, j in range(4)»:\n    pass", "language", "write 1 name"),
    ("subscript target", "for «I[0]» in range(3):\n    pass", "language", "a name or a tuple of names"),
    ("undefined", "I[0] = «y»", "language", "`y` is used before it is defined"),
    ("too early", "I[0] = «y»\ny = 3", "language", "`y` is used before it is defined"),
    ("rank", "I[0] = «A[0]»", "shape", "has 2 dimensions (64, 64) and is indexed with 1"),
    ("rank of store", "«I[0, 1]» = 2", "shape", "an index has one entry a dimension"),
    ("float index", "I[0] = «I[n / 2]»", "language", "index 0 of `I` is of type float32, a float"),
    ("float constant", "I[0] = «I[1.0]»", "language", "the float 1.0"),
    ("string index", "I[0] = «I['a']»", "language", "indices are integers"),
    ("step", "T.copy(«A[0:8:2, 0]», I[0:4])", "language", "slices of tiles are contiguous"),
    ("empty slice", "T.copy(«A[8:8, 0]», I[0:4])", "shape", "at least one element"),
    ("float slice", "T.copy(«A[0:n / 2, 0]», I[0:4])", "language", "bounds of a slice are integers"),
    ("if buffer", "«if A»:\n    I[0] = 1", "language", "a condition is a scalar"),
    ("while buffer", "«while A»:\n    I[0] = 1", "language", "a condition is a scalar"),
    ("while true", "«while True»:\n    I[0] = 1", "language", "always true"),
    ("not buffer", "I[0] = «not A»", "language", "operators work on elements"),
    ("tile arithmetic", "x = «A + 1»", "language", "`+` on the whole tile `A`"),
    ("matmul", "x = «n @ n»", "language", "use T.gemm"),
    ("buffer name", "«A += 1»", "language", "changed without an index"),
    ("tile to element", "«I[0] = A»", "language", "an element takes a number or a scalar expression"),
    ("slice store", "«A[0:4, 0] = n»", "language", "T.copy(src, dst) or T.fill"),
    ("break parallel", "for i in T.Parallel(4):\n    «break»", "language", "`break` in T.Parallel"),
    ("continue pipelined", "for i in T.Pipelined(4, num_stages=2):\n    «continue»", "language", "T.Pipelined"),
    ("nested parallel",
     "for i in T.Parallel(4):\n    A[i, 9] = 1\n    «for j in T.Parallel(4)»:\n        A[i, j] = 0",
     "language", "give one T.Parallel all the extents"),
    ("parallel in serial in parallel",
     "for i in T.Parallel(4):\n    for k in range(2):\n        «for j in T.Parallel(4)»:\n            A[i, j] = k",
     "language", "give one T.Parallel all the extents"),
    ("triangular parallels",
     "for i in T.Parallel(4):\n    «for j in T.Parallel(i + 1)»:\n        A[i, j] = 0",
     "language", "give one T.Parallel all the extents"),
    (
        "tile operation in parallel",
        "for i in T.Parallel(4):\n    «T.clear(I)»",
        "language",
        "`T.clear` inside T.Parallel",
    ),
    ("tile in parallel", "for i in T.Parallel(4):\n    s = «T.alloc_shared((4,), 'int32')»", "language", "whole block"),
    (
        "pipeline in parallel",
        "for i in T.Parallel(4):\n    «for j in T.Pipelined(4)»:\n        I[i] = j",
        "language",
        "T.Pipelined inside T.Parallel",
    ),
    ("dead index", "for i in range(4):\n    I[i] = 0\nI[1] = «i»", "language", "used after the loop that defined it"),
    ("dead let", "if n > 2:\n    x = n + 1\n    I[0] = x\nI[1] = «x»", "language", "used after the `if` branch"),
    ("dead tile", "for i in range(4):\n    s = T.alloc_shared((4,), 'int32')\nT.clear(«s»)", "language", "ended"),
    ("branch value", "x = 3\nif n > 2:\n    x = 5\nI[0] = «x»", "language", "`x` has no single value here"),
    ("else value", "if n > 2:\n    x = 5\nelse:\n    I[0] = «x»", "language", "T.alloc_var"),
    ("carried", "x = 0\nfor i in range(4):\n    «x = x + i»\nI[0] = 1", "language", "not carried from one iteration"),
    ("carried counter", "x = 0\nfor i in range(4):\n    I[x] = 1\n    «x += 1»", "language", "T.alloc_var(dtype, init"),
    ("list in branch", "xs = []\nfor i in range(4):\n    xs.append(n + i)\n«I[0] = xs[0]»", "language",
     "outside the block that defines it"),
    ("comprehension", "x = [v for v in «I»]", "language", "a comprehension over the whole tile `I`"),
    ("generator", "I[0] = sum(i for i in «T.serial(4)»)", "language", "a comprehension over a Loop"),
    ("filter", "x = [i for i in range(3) if «n > i»]", "language", "known only at run time"),
    ("builtin min", "I[0] = «min(n, 3)»", "language", "write T.min"),
    ("builtin int", "I[0] = «int(n)»", "language", "T.cast(x, 'int32')"),
    ("builtin sum", "I[0] = «sum(A)»", "language", "Python's `sum` of the whole tile `A`"),
    ("builtin len", "I[0] = «len(A)»", "language", "builtins run while compiling"),
    ("tile attribute", "x = «A.shap»", "language", "did you mean `shape`?"),
    ("value attribute", "x = «n.foo»", "language", "`n` has no attribute `foo`"),
    ("sum of a str", "x = «'a' + n»", "language", "str is not a scalar value"),
    ("list index", "I[0] = «[1, 2][n]»", "language", "Python needs an integer"),
    ("match on a value", "match n:\n    case «3»:\n        I[0] = 1", "language", "decides Python control flow"),
    ("positional", "«T.copy(A, A, 1)»", "language", "too many positional arguments"),
    ("deleted", "x = 3\ndel x\nI[1] = «x»", "language", "used before it is defined"),
    ("reused index", "for i in range(4):\n    for i in range(2):\n        pass\n    I[«i»] = 0", "language", "ended"),
    ("in", "I[0] = 1 if «n in (1, 2)» else 0", "language", "known only at run time"),
    ("unknown name", "«T.gem»(A, A, A)", "language", "did you mean `gemm`?"),
    ("needs", "«T.alloc_tmem»((64, 64), 'float32')", "target", "Blackwell tensor memory"),
    ("fp6", "s = «T.alloc_shared((4,), T.float6_e2m3fn)»", "target", "no storage here yet"),
    ("keyword", "«T.copy(A, A, disable_tme=True)»", "language", "did you mean `disable_tma`?"),
    ("missing argument", "«T.copy(A)»", "language", "the signature is T.copy(src, dst, *"),
    ("gemm element", "«T.gemm(A[0, 0], A, A)»", "language", "A is one element of `A`"),
    ("gemm number", "«T.gemm(A, 3, A)»", "language", "B is a int, not a tile"),
    ("gemm shape", "s = T.alloc_shared((32, 64), 'float32')\n«T.gemm(s, A, A)»", "shape", "must be"),
    ("gemm vector", "«T.gemm(I, A, A)»", "shape", "an operand has two dimensions"),
    ("copy shape", "s = T.alloc_shared((32, 64), 'float32')\n«T.copy(A, s)»", "shape", "have the same shape"),
    ("copy extents", "«T.copy(A[0:8, 0:8], A[0:4, 0:8])»", "shape", "both sides have the same extents"),
    ("copy run-time extent", "«T.copy(A[n:64, 0], I)»", "shape", "both sides have the same extents"),
    ("copy number", "«T.copy(3, I)»", "language", "the source is a int, not a tile"),
    ("dynamic tile", "s = «T.alloc_shared((n, 4), 'float32')»", "shape", "tiles have constant shapes"),
    ("zero tile", "s = «T.alloc_shared((0, 4), 'float32')»", "shape", "extents are at least 1"),
    ("bad dtype", "s = «T.alloc_shared((4, 4), 'float17')»", "shape", "is not a data type"),
    ("fill tile", "«T.fill(A, I)»", "language", "a tile is filled with one scalar"),
    ("reduce shape", "«T.reduce_sum(A, A, dim=1)»", "shape", "the result has shape (64,) or (64, 1)"),
    ("reduce dim", "«T.reduce_sum(A, I, dim=2)»", "shape", "dim names one dimension, -2 … 1"),
    ("return in loop", "for i in range(3):\n    «return»", "language", "`return` inside a loop"),
    ("second kernel", "with «T.Kernel(4)»:\n    pass", "language", "T.Kernel inside T.Kernel"),
    ("with number", "with «3»:\n    pass", "language", "`with` on a int"),
    ("no with", "«T.Kernel(4)»", "language", "it opens a block"),
    ("assert buffer", "«assert A»", "language", "a condition is a scalar"),
    ("unpack", "a, b = n", "language", "cannot be unpacked"),
    ("unpack count", "«a, b = 1, 2, 3»", "language", "3 values for 2 targets"),
    ("step 0", "for i in «range(0, 4, 0)»:\n    pass", "language", "the step of a loop is not 0"),
    ("float bound", "for i in «range(n / 2)»:\n    pass", "language", "loop bounds are integers"),
    ("unroll", "«for i in T.unroll(5000)»:\n    I[0] = i", "language", "may become 4096 statements"),
    ("stages", "for i in «T.Pipelined(4, num_stages=-1)»:\n    pass", "language", "num_stages is an int ≥ 0"),
    ("macro in and", "@T.macro\ndef m():\n    T.clear(A)\n    return n\nI[0] = 1 if «n > 1 and m()» else 0", "language",
     "a macro or tile operation inside"),
    ("barrier", "«T.barrier_arrive(I[0])»", "language", "one barrier that T.alloc_barrier made"),
    ("swizzle", "«T.use_swizzle(8, 'diagonal')»", "language", "orders are row, column"),
    ("thread dim", "x = «T.get_thread_binding(3)»", "language", "the dimension is 0 … 2"),
    ("declare", "«q: T.Tensor((3,), 'int32')»", "language", "`q` is declared but is not a parameter"),
    ("zero division", "I[0] = «n // 0»", "shape", "the divisor is not 0"),
    ("float shift", "I[0] = «A[0, 0] << 1»", "shape", "take integers"),
    ("local index", "s = T.alloc_shared((4,), 'int32')\nI[0] = «s[4]»", "shape", "the dimension has 4 elements"),
    ("shared places",
     "s = T.alloc_shared((8,), 'int32')\n«T.annotate_layout({s: lambda i: i % 4 * 3})»", "layout",
     "must be injective: elements (0,) and (4,) both map to physical coordinates (0,)"),
    ("wide characters", "é = 'ü'; I[0] = «A[0]»", "shape", "is indexed with 1"),
]  # fmt: skip


@pytest.mark.parametrize("name, text, code, message", IN_BODY, ids=[row[0] for row in IN_BODY])
def test_mistake_in_a_body(name, text, code, message):
    lines = "".join(f"        {line}\n" for line in text.split("\n"))
    check(HEAD + lines, code, message)


def check(source: str, code: str, message: str) -> TileError:
    if "«" not in source:
        source = source.replace(source.strip().splitlines()[-1].strip(), f"«{source.strip().splitlines()[-1].strip()}»")
    plain, span = marked(source)
    with pytest.raises(TileError) as caught:
        for made in run_cell(plain).values():
            if isinstance(made, T.PrimFunc):
                made.kernels
    error = caught.value
    assert error.code == code, str(error)
    assert message in str(error)
    assert error.loc is not None, str(error)
    assert (error.loc.line, error.loc.col) == span[:2], str(error)
    assert error.loc.span() == span, str(error)
    assert error.rule or "does not exist" in error.found
    return error


# name, whole cell, code, part of the message
CELLS = [
    ("threads 0", "with «T.Kernel(4, threads=0)» as bx:\n        pass", "shape", "at least one thread"),
    ("threads -1", "with «T.Kernel(4, threads=-128)» as bx:\n        pass", "shape", "at least one thread"),
    ("threads 2048", "with «T.Kernel(4, threads=2048)» as bx:\n        pass", "resource", "at most 1024 threads"),
    ("threads 64³", "with «T.Kernel(4, threads=(64, 64))» as bx:\n        pass", "resource", "4096 threads a block"),
    ("threads 1.5", "with «T.Kernel(4, threads=1.5)» as bx:\n        pass", "shape", "threads is an int"),
    ("threads n", "with «T.Kernel(4, threads=n)» as bx:\n        pass", "shape", "known while compiling"),
    ("grid 4-D", "with «T.Kernel(1, 2, 3, 4)» as bx:\n        pass", "language", "1 to 3 dimensions"),
    ("grid -1", "with «T.Kernel(-1)» as bx:\n        pass", "shape", "extents are at least 0"),
    ("grid float", "with «T.Kernel(1.5)» as bx:\n        pass", "shape", "extents are integers"),
    ("names", "with «T.Kernel(2, 2)» as (a, b, c):\n        pass", "language", "has 2 grid dimensions, `as` names 3"),
    ("no kernel", "pass", "language", "has no `with T.Kernel(...)`"),
    ("outside", "«T.clear(A)»", "language", "`T.clear` outside `with T.Kernel(...)`"),
    ("index outside", "«x = T.get_thread_binding()»", "language", "answers for the running kernel"),
    ("const", "M = «T.const('M')»", "language", "use a Python value of the factory"),
    ("returns", "with T.Kernel(1) as bx:\n        pass\n    «return A»", "language", "make the output a parameter"),
    ("empty", "B = T.empty((4,))\n    with T.Kernel(1):\n        pass", "language", "returned"),
]  # fmt: skip


@pytest.mark.parametrize("name, text, code, message", CELLS, ids=[row[0] for row in CELLS])
def test_mistake_in_a_function(name, text, code, message):
    source = f'\n@T.prim_func\ndef k(A: T.Tensor((64, 64), "float32"), n: T.int32):\n    {text}\n'
    if "«" not in source:
        source = source.replace("def k", "«def» k")
    if name == "index outside":
        source = source.replace("«x = T.get_thread_binding()»", "x = «T.get_thread_binding()»")
    check(source, code, message)


def test_parameters_have_types():
    error = check("\n@T.prim_func\ndef k(«A»):\n    with T.Kernel(1) as bx:\n        pass\n", "language", "has no type")
    assert "T.Tensor" in error.fix
    check("\n@T.prim_func\ndef k(«A»):\n    with T.Kernel(1) as bx:\n        T.clear(A)\n", "language", "has no type")


def test_positional_only_and_variadic_parameters_are_refused():
    text = "\n@T.prim_func\ndef k({}):\n    with T.Kernel(1) as bx:\n        pass\n"
    check(text.format("«A: T.Tensor((4,), 'int32')», /"), "language", "positional-only")
    check(text.format("A: T.Tensor((4,), 'int32'), *«B»"), "language", "fixed list of parameters")


def test_nested_calls_name_the_chain():
    source = """
    @T.macro
    def inner(A, i):
        A[i] = «A[i, i]»

    @T.macro
    def outer(A):
        inner(A, 0)

    @T.prim_func
    def k(A: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            outer(A)
    """
    error = check(source, "shape", "is indexed with 2")
    assert [call.line for call in error.loc.calls] == [12, 7]
    assert "called from" in str(error)


def test_endless_recursion_is_named():
    source = """
    @T.macro
    def again(A, n):
        «again(A, n + 1)»

    @T.prim_func
    def k(A: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            again(A, 0)
    """
    error = check(source, "language", "calls itself more than")
    assert "known while compiling" in error.rule
