"""%%tilekernel: what it binds, what it gives, and what it says when it cannot."""

from __future__ import annotations

import hashlib
import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import tileworkbench as tw
from tileworkbench import errors, views
from tileworkbench.views.document import MIME

from .cells import ADD

SCHEMA = Path(views.__file__).with_name("document.schema.json")
EAGER = """%%tilekernel{options}
@tw.jit
def double(A):
    M, N = T.const("M N")
    A: T.Tensor[(M, N), "float32"]
    B = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32)) as (bx, by):
        for i, j in T.Parallel(32, 32):
            B[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j] * 2
    return B
"""
FACTORY = """%%tilekernel{options}
@tw.jit(out_idx=[-1])
def make(M, N, dtype="float32"):
    @T.prim_func
    def scaled(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32)) as (bx, by):
            for i, j in T.Parallel(32, 32):
                B[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j] * 3
    return scaled
"""
DYNAMIC = ADD.replace('"float16"', '"float32"').replace("@T.prim_func", 'm = T.dynamic("m")\n@T.prim_func').replace(
    "(M, N)", "(m, N)").replace("T.ceildiv(M", "T.ceildiv(m")  # fmt: skip


def add(options=""):
    return ADD.format(options=f" {options}" if options else "")


def matrices():
    rng = np.random.default_rng(0)
    return [rng.integers(-3, 4, (40, 50)).astype("float16") for _ in range(2)]


def test_the_kernel_is_bound_and_shown(notebook):
    done = notebook.run(add("--target cpu"))
    assert done.error is None and isinstance(done.value, tw.Result)
    kernel = notebook.space["add"]
    assert done.value.kernel is kernel
    a, b = matrices()
    c = np.zeros_like(a)
    kernel(a, b, c)
    assert np.array_equal(c, a + b)


def test_names_of_the_language_are_bound_unless_the_user_has_bound_them(notebook):
    assert "T" not in notebook.space
    notebook.run(add("--target cpu"))
    assert notebook.space["T"].__name__ == "tileworkbench.language" and notebook.space["tw"] is tw
    notebook.run("import tileworkbench.language as L\nT = 'mine'")
    notebook.run(add("--target cpu").replace("T.", "L."))
    assert notebook.space["T"] == "mine"


def test_check_against_a_reference(notebook):
    done = notebook.run(add("--target cpu --check 'lambda a, b: a + b'"))
    assert done.value.check.ok and done.value.check.proven == "reference"
    notebook.run("def plus(a, b):\n    return a + b")
    assert notebook.run(add("--target cpu --check=plus")).value.check.ok
    without = notebook.run(add("--target cpu --check")).value.check
    assert without.ok and without.proven == "runs"


def test_a_wrong_kernel_is_shown_and_stops_the_run(notebook):
    done = notebook.fail(add("--target cpu --check 'lambda a, b: a - b'"))
    assert isinstance(done.error, errors.SimulationError) and "expected" in done.error.found
    assert done.shown[0][MIME]["verdict"]["word"] == "wrong"
    assert "add" in notebook.space


def test_another_target(notebook):
    done = notebook.run(add("--target sm_80 --check --show plan,cuda"))
    assert done.value.kernel.target.name == "sm_80"
    assert done.value.check.ok and done.value.check.proven == "meaning"
    assert {s.id for s in done.value.document.sections} == {"summary", "check", "plan", "cuda"}


def test_bench(notebook):
    done = notebook.run(add("--target cpu --bench"))
    assert done.value.bench.ms > 0
    assert any(s.id == "bench" for s in done.value.document.sections)


def test_name(notebook):
    notebook.run(add("--target cpu --name plus"))
    assert notebook.space["plus"].name == "add" and "add" not in notebook.space
    notebook.run("add = 5")
    notebook.run(add("--target cpu --name plus"))
    assert notebook.space["plus"].name == "add" and notebook.space["add"] == 5
    two = add("--target cpu --name add") + add().split("\n", 1)[1].replace("def add", "def other")
    assert notebook.run(two).value.kernel.name == "add"
    assert notebook.space["other"].name == "other"


def test_a_factory_is_built_with_set(notebook):
    done = notebook.run(FACTORY.format(options=" --target cpu --set M=8 --set N=9 --check 'lambda a: 3 * a'"))
    assert done.error is None and done.value.check.ok
    assert notebook.space["scaled"].params[0].shape == (8, 9)
    assert notebook.space["make"](2, 3).params[0].shape == (2, 3)
    failed = notebook.fail(FACTORY.format(options=" --set M=8"))
    assert "N" in failed.error.found and "--set N" in failed.error.fix
    failed = notebook.fail(FACTORY.format(options=" --set M=8 --set N=9 --set Q=1"))
    assert "Q" in failed.error.found


def test_an_eager_function_waits_for_its_tensors_or_for_set(notebook):
    done = notebook.run(EAGER.format(options=""))
    assert done.error is None and done.value.document.verdict.word == "ready"
    with tw.options(target="cpu"):
        a = np.ones((4, 5), "float32")
        assert np.array_equal(notebook.space["double"](a), 2 * a)
        done = notebook.run(EAGER.format(options=" --set M=33 --set N=8 --check 'lambda a: 2 * a'"))
    assert done.value.check.ok
    failed = notebook.fail(EAGER.format(options=" --set M=33"))
    assert "N" in failed.error.found


def test_dynamic_extents_are_checked_with_and_without_a_tail(notebook):
    done = notebook.run(DYNAMIC.format(options=" --target cpu --check 'lambda a, b: a + b'"))
    assert sorted({case.sizes["m"] for case in done.value.check.cases}) == [49, 64]
    done = notebook.run(DYNAMIC.format(options=" --target cpu --check 'lambda a, b: a + b' --set m=5"))
    assert {case.sizes["m"] for case in done.value.check.cases} == {5}


def test_running_again_replaces(notebook):
    first = notebook.run(add("--target cpu")).value.kernel
    second = notebook.run(add("--target cpu").replace("+ B[", "- B[")).value.kernel
    assert notebook.space["add"] is second is not first
    a, b = matrices()
    c = np.zeros_like(a)
    second(a, b, c)
    assert np.array_equal(c, a - b)


def test_the_text_can_be_read_back(notebook):
    notebook.run(FACTORY.format(options=" --target cpu --set M=8 --set N=9"))
    assert inspect.getsource(notebook.space["make"].fn).startswith("@tw.jit(out_idx=[-1])\ndef make")


def test_magics_inside_the_cell(notebook):
    done = notebook.run(add("--target cpu").replace("@T.prim", "%time x = 3\n@T.prim"))
    assert done.error is None and notebook.space["x"] == 3


@pytest.mark.parametrize("change", [
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.rstrip("\n"),
    lambda text: text.replace("    ", "\t"),
    lambda text: text.replace("@T.prim", "# é 𝟙 \"' %%\n@T.prim"),
    lambda text: text.replace("@T.prim", "\ufeff@T.prim"),
    lambda text: "\n\n" + text,
])  # fmt: skip
def test_texts_of_all_kinds(notebook, change):
    done = notebook.run(change(add("--target cpu --check 'lambda a, b: a + b'")))
    assert done.error is None and done.value.check.ok


BODY = add().split("\n", 1)[1]
MISTAKES = [
    ("%%tilekernel --chekc\n" + BODY, errors.OptionError, "--chekc", "--check", 1, 13, 20),
    ("%%tilekernel --target\n" + BODY, errors.OptionError, "--target", "--target NAME", 1, 13, 21),
    ("%%tilekernel --show plann\n" + BODY, errors.OptionError, "plann", "plan", 1, 13, 19),
    ("%%tilekernel --set M\n" + BODY, errors.OptionError, "--set M", "--set", 1, 13, 18),
    ("%%tilekernel plan\n" + BODY, errors.OptionError, "'plan'", "", 1, 13, 17),
    ("%%tilekernel --bench=3\n" + BODY, errors.OptionError, "takes no value", "--bench", 1, 13, 22),
    ("%%tilekernel --check 'a\n" + BODY, errors.OptionError, "quot", "quote", 1, 0, 12),
    ("%%tilekernel --check nothing\n" + BODY, errors.OptionError, "nothing", "", 1, 0, 12),
    ("%%tilekernel --check M\n" + BODY, errors.OptionError, "no function", "lambda", 1, 0, 12),
    ("%%tilekernel --target sm_91\n" + BODY, errors.TargetError, "sm_91", "sm_90a", 1, 0, 12),
    ("%%tilekernel\n", errors.LanguageError, "empty", "prim_func", 1, 0, 12),
    ("%%tilekernel\nx = 1\n", errors.LanguageError, "no kernel", "prim_func", 1, 0, 12),
    ("%%tilekernel\n" + BODY.replace("in T.P", "int T.P"), errors.LanguageError, "syntax", "", 5, 17, 20),
    ("%%tilekernel\n" + BODY.replace("((M, N)", "((M, Z)", 1), errors.LanguageError, "`Z`", "", 3, 24, 25),
    ("%%tilekernel\n# é 𝟙\n" + BODY.replace("C[by", "C['𝟙' , bz"), errors.LanguageError, "`bz`", "`bz`", 7, 21, 23),
]


@pytest.mark.parametrize("text, kind, found, fix, line, col, end", MISTAKES, ids=[m[2] + m[0][:26] for m in MISTAKES])
def test_a_mistake_leaves_a_record_for_the_editor_and_is_raised(notebook, text, kind, found, fix, line, col, end):
    done = notebook.fail(text)
    assert isinstance(done.error, kind), done.error
    assert found in done.error.found and fix in done.error.fix
    record = done.shown[0][MIME]
    first = record["diagnostics"][0]
    assert (first["line"], first["col"], first["end_col"]) == (line, col, end)
    assert first["severity"] == "error" and first["code"] == kind.code
    assert record["cell"]["sha256"] == hashlib.sha256(text.rstrip("\n").encode()).hexdigest()


def test_no_frame_of_ours_is_printed(notebook):
    done = notebook.fail("%%tilekernel\n" + BODY.replace("C[by", "C[bz"))
    assert "LanguageError" in done.written and "^" in done.written
    assert "tileworkbench/" not in done.written and "Traceback" not in done.written
    with tw.options(show_internal_frames=True):
        assert "Traceback" in notebook.fail("%%tilekernel --frob\n" + BODY).written


def test_a_wrong_call_in_a_later_cell_shows_that_cell(notebook):
    notebook.run(add("--target cpu"))
    done = notebook.fail("import numpy as np\nadd(np.zeros(3), 1, 2)")
    assert isinstance(done.error, errors.LaunchError)
    assert "add(np.zeros(3), 1, 2)" in done.written and "jitkernel" not in done.written


def test_errors_of_the_users_own_python_stay_what_they_are(notebook):
    done = notebook.fail("%%tilekernel\n1 / 0\n" + BODY)
    assert isinstance(done.error, ZeroDivisionError)


def test_the_bundle_is_small_and_plain(notebook):
    done = notebook.run(add("--target sm_90a --check --show plan,ir,cuda,ptx"))
    bundle = done.value._repr_mimebundle_()
    assert set(bundle) == {MIME, "text/html", "text/plain"}
    assert len(json.dumps(bundle, ensure_ascii=False).encode()) <= 100_000
    record = bundle[MIME]
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(record, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert record["version"] == 1 and record["diagnostics"] == []
    assert [s["id"] for s in record["sections"]] == ["summary", "check", "plan", "ir", "cuda", "ptx"]
    assert "<script" not in bundle["text/html"] and "<svg" not in bundle["text/html"]
    assert bundle["text/plain"].startswith("add(A, B, C)")


def test_help(notebook):
    done = notebook.run("%%tilekernel --help\n")
    assert done.error is None and "--check" in done.shown[0]["text/plain"]
    assert "--target" in notebook.shell.find_cell_magic("tilekernel").__doc__


FOREIGN = """%%tilekernel{options}
import tilelang
import tilelang.language as TL

@tilelang.jit(out_idx=[-1], pass_configs={{tilelang.PassConfigKey.TL_SIMPLIFY: True}})
def make(M, N):
    @TL.prim_func
    def tripled(A: TL.Tensor((M, N), "float32"), B: TL.Tensor((M, N), "float32")):
        with TL.Kernel(TL.ceildiv(N, 32), TL.ceildiv(M, 32)) as (bx, by):
            for i, j in TL.Parallel(32, 32):
                B[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j] * 3
    return tripled
"""


def test_a_cell_written_for_tilelang(notebook):
    ran = notebook.run(FOREIGN.format(options=" --tilelang --set M=40 --set N=50 --target cpu"))
    assert ran.error is None
    a = np.arange(2000, dtype=np.float32).reshape(40, 50)
    np.testing.assert_array_equal(np.asarray(notebook.space["tripled"](a)), a * 3)
    assert any("TL_SIMPLIFY" in note or "tl.Simplify" in note for note in notebook.space["tripled"].plan.notes)
    without = notebook.run("import tilelang.language")  # only that cell's imports are answered
    assert isinstance(without.error, ImportError) or "tileworkbench" not in str(without.error)
