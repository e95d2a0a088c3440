"""The shape of the text: names, strings, order, places, and that the same kernel always gives the same bytes."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tileworkbench.codegen.emit import emit
from tileworkbench.codegen.names import RESERVED, Names, comment, is_plain, literal_format, mangle, quoted
from tileworkbench.errors import InternalError, Loc, TargetError
from tileworkbench.ir.dtype import FLOAT32, INT32
from tileworkbench.ir.expr import Buffer, Call, Load, Special, Unary, Var, const
from tileworkbench.ir.instr import BarWait, LoadMem, Reg, StoreMem, Sync, Trap
from tileworkbench.ir.planned import Acquire, Channel, Role
from tileworkbench.ir.stmt import Assert, For, If, Let, Print, Store
from tileworkbench.target import Target

from . import samples
from .samples import LANE, THREAD, ZERO, Frame, addr, reg, run

ROOT = Path(__file__).resolve().parents[2]
PAYLOADS = (
    'x"); asm volatile("trap;"); //', "a\n}\n__global__ void evil() {", "#include \"/etc/passwd\"\n", "\\",
    "ends in \\",
    "%s%n%d", "*/ int x; /*", "??/\nint x;", "α", "", "1abc", "int", "tw_load16", "__x", "a" * 300, "a b;c", "\0\r\x1b",
    "\u2028#define x", "L\"x\"", "smem", "tid", "exp", "threadIdx", "main", "linux",
)  # fmt: skip


@pytest.mark.parametrize("name", PAYLOADS)
def test_any_name_becomes_a_plain_identifier(name: str) -> None:
    made = mangle(name)
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,63}", made) and made not in RESERVED
    assert "__" not in made and not made.startswith("tw_")


def test_names_stay_apart() -> None:
    names = Names()
    made = [names.fresh(n) for n in ("a", "a", "a_1", "a b", "a_b", "int", "int")]
    assert len(set(made)) == len(made) and made[0] == "a"
    assert is_plain("A_shared") and not is_plain("double") and not is_plain("_x")


@pytest.mark.parametrize("text", PAYLOADS)
def test_strings_stay_inside_their_quotes(text: str) -> None:
    inside = quoted(text)[1:-1]
    assert re.fullmatch(r"(?:[ !#-\[\]-~]|\\[0-7]{3})*", inside) and "?" not in inside
    octal = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), inside)
    assert octal.encode("latin-1") == text.encode()
    assert re.fullmatch(r"[^%]*(?:%%[^%]*)*", literal_format(text))
    assert re.fullmatch(r"[ -~]*", comment(text)) and "\\" not in comment(text)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_payloads_leave_the_code_as_it_is(payload: str) -> None:
    """With and without payloads the text differs in identifiers, string bodies and comments only."""

    def text(name: str, message: str) -> str:
        x, y, n = Buffer(name, (64,), FLOAT32), Buffer("y", (64,), FLOAT32), Var("n")
        r = reg(name, 1)
        loc = Loc(message, 3)
        body = (LoadMem(run(r), addr(x, THREAD)), Let(n, THREAD + 1), Assert(n > 0, message, loc=loc), Trap(message),
                Print((message, Load(r, (ZERO,)), message, n)), Sync("block", reason=message),
                Role(message, 0, 4, (StoreMem(addr(y, THREAD), run(r)),)))  # fmt: skip
        return emit(
            samples.Kernel(name, (x, y), (1,), (), 128, body, level="thread", buffers=(r,)), Target.of("sm_90a")
        ).text

    def bare(generated: str) -> str:
        generated = re.sub(r'"(?:[^"\\\n]|\\[0-7]{3})*"', '""', generated)
        generated = re.sub(r" *//[^\n]*", "", generated)
        return re.sub(r"\b[A-Za-z_]\w*\b", "id", generated)

    assert bare(text(payload, payload or "x")) == bare(text("plain", "plain"))


def test_payloads_build() -> None:
    nvrtc = pytest.importorskip("tileworkbench.runtime.nvrtc")
    x = Buffer("threadIdx", (64,), FLOAT32)
    r, again = reg("int", 1), reg("int", 4)
    body = (LoadMem(run(r), addr(x, THREAD)), Store(again, (const(2),), Load(r, (ZERO,))), Trap('%n"); //\n'),
            Print(("%s", Load(again, (const(2),)))), StoreMem(addr(x, THREAD), Reg(again, const(2))))  # fmt: skip
    kernel = samples.Kernel("main", (x,), (1,), (), 64, body, level="thread", buffers=(r, again))
    source = emit(kernel, Target.of("sm_80"))
    nvrtc.build(source)
    assert source.params[0].name == "threadIdx" and source.args[0].name == "threadIdx"


def _digest() -> str:
    made = [samples.elementwise(), samples.mma_gemm(), samples.wgmma_gemm()]
    texts = [emit(k, Target.of("sm_90a")).text for k in made] + [emit(made[0], Target.of("gfx942")).text]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def test_text_is_the_same_in_every_process() -> None:
    code = "from tests.codegen.test_text import _digest; print(_digest())"
    seen = {_digest()}
    for seed in ("1", "4242"):
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONHASHSEED": seed})  # fmt: skip
        seen.add(done.stdout.strip())
    assert len(seen) == 1


def test_every_line_has_a_place_and_statements_keep_theirs() -> None:
    f = Frame()
    r = f.reg(1)
    cell = Loc("<cell 4>", 17, 2)
    inner = Loc("<cell 4>", 18, 6)
    body = If(THREAD < 3, (Store(r, (ZERO,), const(1.0), loc=inner),), loc=cell)
    source = emit(f.kernel(body, loc=Loc("<cell 4>", 10)), Target.of("sm_80"))
    lines = source.text.splitlines()
    assert len(lines) == len(source.line_map)
    at = {line.strip(): loc for line, loc in zip(lines, source.line_map, strict=True)}
    assert at["if (tid < 3) {"] == cell and at["r0 = 1.0f;"] == inner
    assert next(loc for line, loc in at.items() if "k_kernel(" in line) == Loc("<cell 4>", 10)


def test_parentheses_are_few_and_enough() -> None:
    f = Frame()
    r = f.reg(1, INT32)
    a, b = Load(r, (ZERO,)), Special("thread")
    for e, text in (
        ((a + b) * 3, "(r0 + tid) * 3"), (a + b * 3, "r0 + tid * 3"), (a - (b - 1), "r0 - (tid - 1)"),
        (b // 4 * 4 + b % 4, "(tid >> 2) * 4 + (tid & 3)"), (b // 3, "tid / 3"), (b % 6 // 2, "(tid % 6) >> 1"),
        (a // 3, "tw_floordiv<int>(r0, 3)"), (Unary("neg", -a, dtype=INT32), "-(-r0)"), ((a + 1) // 8, "(r0 + 1) >> 3"),
    ):  # fmt: skip
        assert f"r0 = {text};" in emit(f.kernel(Store(r, (ZERO,), e)), Target.of("sm_80")).text


def test_loop_variables_are_known_not_to_be_negative() -> None:
    f = Frame()
    r, i, j = f.reg(1, INT32), Var("i"), Var("j")
    up = For(i, ZERO, const(9), const(1), (Store(r, (ZERO,), i // 3),))
    down = For(j, const(9), const(-9), const(-1), (Store(r, (ZERO,), j // 3),))
    text = emit(f.kernel(up, down), Target.of("sm_80")).text
    assert "r0 = i / 3;" in text and "r0 = tw_floordiv<int>(j, 3);" in text
    assert "for (int i = 0; i < 9; ++i)" in text and "for (int j = 9; j > -9; j += -1)" in text


def test_roles_are_one_chain_and_own_their_registers() -> None:
    f = Frame()
    shared, mine, x = f.reg(2), f.reg(2), f.tensor()
    load = Role("load", 4, 4, (LoadMem(run(mine), addr(x, Special("role_thread") * 2)),))
    compute = Role("compute", 0, 4, (LoadMem(run(shared), addr(x, LANE * 2)), Sync("role", id=1, threads=128)))
    text = emit(f.kernel(load, compute, keep=False, launch_threads=256), Target.of("sm_90a")).text
    chain = [line.strip() for line in text.splitlines() if "warp" in line or "else" in line]
    assert "if (warp >= 4 && warp < 8) {" in chain and "} else {" in chain
    assert text.index("float r1[2]") > text.index("// role load") and "(tid - 128) * 2" in text
    assert 'asm volatile("bar.sync 1, 128;"' in text


def test_a_clone_declares_its_variables_again() -> None:
    f = Frame()
    r, v = f.reg(1, INT32), Var("v")
    part = (Let(v, THREAD + 1), Store(r, (ZERO,), v))
    text = emit(f.kernel(*part, *part, If(THREAD < 1, part), Store(r, (ZERO,), v)), Target.of("sm_80")).text
    assert re.findall(r"const int (v\w*) =", text) == ["v", "v_1", "v_2"]
    assert text.rindex("r0 = v_1;") > text.rindex("r0 = v_2;")


def test_what_lowering_left_is_named() -> None:
    f = Frame()
    with pytest.raises(InternalError, match="Acquire is no thread-level statement"):
        emit(f.kernel(Acquire(Channel("c", (), 2, "a", ("b",)))), Target.of("sm_90a"))
    with pytest.raises(InternalError, match="tile-level"):
        emit(f.kernel().with_(level="tile"), Target.of("sm_90a"))
    with pytest.raises(InternalError, match="cpu has no text"):
        emit(f.kernel(), Target.of("cpu"))
    with pytest.raises(InternalError, match="is global memory"):
        emit(f.kernel(Store(f.tensor(), (ZERO,), const(0.0))), Target.of("sm_80"))
    with pytest.raises(InternalError, match="no text for nosuch"):
        emit(f.kernel(Store(f.reg(1), (ZERO,), Call("nosuch", (const(1.0),)))), Target.of("sm_80"))
    with pytest.raises(TargetError, match="mbarrier"):
        emit(Frame().kernel(BarWait(f.barrier(), ZERO)), Target.of("sm_80"))
