"""Compiling processes: the same results and errors as here, nothing of the program run again, ends that are clean."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tests import kernels
from tileworkbench import options
from tileworkbench.errors import BuildError, OptionError, ResourceError, TileError
from tileworkbench.ir.text import show
from tileworkbench.jitkernel import away, fanout, process, wire
from tileworkbench.jitkernel.timing import Timing
from tileworkbench.jitkernel.variant import build, build_here
from tileworkbench.runtime import nvrtc
from tileworkbench.target import Target

pytest.importorskip("cuda.bindings", reason="NVRTC is not installed")
ROOT = Path(__file__).resolve().parents[2]
SM80 = Target.of("sm_80")


@pytest.fixture(autouse=True)
def own_cache(tmp_path):
    with options(cache_dir=tmp_path, target="sm_80"):
        yield tmp_path


@pytest.fixture
def pool(monkeypatch):
    """Processes of this test alone."""
    made = away.Pool()
    monkeypatch.setattr(away, "pool", made)
    yield made
    made.end()


def scale(n, block=64, factor=2.0):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * factor

    return main


def sent(tile, seconds=None):
    with away.lease(seconds) as lease, lease.entered():
        return build(tile, SM80, Timing())


def test_a_process_makes_what_this_one_makes(pool):
    tile = kernels.gemm(256, 256, 256).kernel
    with options(cache=False):
        there, here = sent(tile), build_here(tile, SM80, Timing())
    assert len(pool._idle) == 1 and there._found is None  # it was not made here
    assert there.source == here.source and there.binary.code == here.binary.code
    assert [s.name for s in there.steps] == [s.name for s in here.steps]
    assert show(there.kernel) == show(here.kernel)


def test_processes_are_kept_and_ended(pool):
    for block in (32, 64):
        sent(scale(1024, block).kernel)
    (worker,) = pool._idle
    assert worker.alive and os.path.isdir(worker._place)
    pool.end()
    assert not worker.alive and not pool._idle and not os.path.exists(worker._place)


def test_an_error_comes_back_as_it_was_raised(pool):
    tile = kernels.gemm(1024, 1024, 1024, 256, 256, 256, 4).kernel
    with pytest.raises(ResourceError) as here:
        build_here(tile, SM80, Timing())
    with pytest.raises(ResourceError) as there:
        sent(tile)
    assert str(there.value) == str(here.value) and there.value.loc == here.value.loc is not None
    assert len(pool._idle) == 1


def test_a_kernel_that_cannot_travel_is_compiled_here(pool):
    def skewed(i, j):
        return i * 40 + (j + i) % 40

    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=32) as _bx:
            S = T.alloc_shared((32, 32), "float32")
            T.annotate_layout({S: T.Layout((32, 32), lambda i, j: (i, (j + i) % 32))})
            T.copy(A, S)
            T.copy(S, B)

    found = sent(main.kernel)
    assert found.binary.code and not pool._idle


def test_a_process_that_dies_is_an_error_with_a_place_and_is_replaced(pool, monkeypatch):
    tile = scale(1024).kernel
    sent(tile)
    real = wire.send

    def killing(pipe, frame):
        pool_worker[0]._process.kill()
        pool_worker[0]._process.wait()
        real(pipe, frame)

    pool_worker = [pool._idle[0]]
    monkeypatch.setattr(wire, "send", killing)
    with pytest.raises(BuildError, match="ended with code") as raised:
        sent(scale(2048).kernel)
    assert raised.value.loc is not None
    monkeypatch.setattr(wire, "send", real)
    assert sent(scale(4096).kernel).binary.code and pool.usable


def test_a_compilation_has_its_time(pool, monkeypatch):
    sent(scale(1024).kernel)
    monkeypatch.setattr(wire, "send", lambda pipe, frame: None)  # the process waits for a task that never comes
    with pytest.raises(BuildError, match="took longer than"):
        sent(scale(1024).kernel, seconds=0.05)
    assert not pool._idle


def test_what_is_compiled_at_the_end_of_a_lease_is_stopped(pool, monkeypatch):
    sent(scale(1024).kernel)
    asked = threading.Event()
    monkeypatch.setattr(wire, "send", lambda pipe, frame: asked.set())
    problems = []

    def work():
        with lease.entered():
            try:
                build(scale(1024).kernel, SM80, Timing())
            except BuildError as error:
                problems.append(error)

    with away.lease() as lease:
        thread = threading.Thread(target=work)
        thread.start()
        assert asked.wait(10)
    thread.join(10)
    assert not thread.is_alive() and len(problems) == 1 and not pool._idle


@pytest.mark.parametrize("program", ["/no/such/python", "/bin/true"])
def test_where_no_process_starts_the_caller_compiles(pool, monkeypatch, program, tmp_path):
    link = tmp_path / "python-like"
    if os.path.exists(program):
        link.symlink_to(program)
    monkeypatch.setattr(sys, "executable", str(link))
    monkeypatch.setattr(process.tempfile, "tempdir", str(tmp_path))
    found = sent(scale(1024).kernel)
    assert found.binary.code and not pool.usable and not pool._idle
    assert not list(tmp_path.glob("tileworkbench-compile-*"))
    monkeypatch.setattr(sys, "executable", "/usr/bin/editor")
    assert not process.is_python()


def test_settings_and_edits_reach_the_process(pool, own_cache):
    tile = scale(1024).kernel
    with options(cache=False):
        sent(tile)
    assert not list(own_cache.glob("*.twb"))
    sent(tile)
    assert len(list(own_cache.glob("*.twb"))) == 2  # its text and its code
    from tileworkbench.jitkernel import hooks

    hooks.register("cuda", lambda text, target: "// edited\n" + text)
    try:
        assert sent(tile).source.text.startswith("// edited")
    finally:
        hooks.register("cuda", None)
    assert not sent(tile).source.text.startswith("// edited")


@pytest.mark.parametrize("version", ["nvrtc 11.0", None])
def test_code_of_another_device_compiler_is_made_here(pool, monkeypatch, version):
    tile = scale(1024).kernel
    with options(cache=False):
        if version:
            monkeypatch.setattr(nvrtc, "version", lambda: version)
        else:  # the process has none
            real = wire.made_of
            monkeypatch.setattr(
                wire, "made_of", lambda parts: real((parts[0], None, ("MissingDependency", *[""] * 3, None, ())))
            )
        found = sent(tile)
    assert found._found is not None and found.binary.code and found.missing is None and pool._idle


# Many at a time.


def test_results_come_in_order_with_their_errors(pool):
    def one(block):
        if block == 3:
            raise OptionError("three")
        return tw.compile(scale(4096, block), target="sm_80")

    blocks = [64, 32, 3, 128, 256, 512]
    found = list(fanout.fan_out(one, blocks, count=2))
    assert [item for item, _ in found] == blocks
    assert isinstance(found[2][1], OptionError)
    assert [k.prim_func.kernel.grid for n, k in found if n != 3] == [(4096 // n,) for n in blocks if n != 3]
    assert 1 <= len(pool._idle) <= 2
    assert all(k.variant._found is None for _, k in found if not isinstance(k, Exception))


def test_configurations_with_one_text_are_built_once(pool):
    found = [k for _, k in fanout.fan_out(
        lambda turn: tw.compile(scale(4096, factor=3.0 + 0 * turn), target="sm_80"), range(6), count=3)]  # fmt: skip
    assert sorted(k.timing.cached for k in found) == [False] + [True] * 5
    assert len({k.variant.binary.key for k in found}) == 1


def test_few_kernels_start_no_process(pool):
    found = list(fanout.fan_out(lambda b: tw.compile(scale(4096, b), target="sm_80"), [32, 64]))
    assert not pool._idle and all(k.registers for _, k in found)


def test_par_compile_uses_them(pool):
    programs = [scale(4096, block) for block in (32, 64, 128, 256)]
    made = tw.par_compile(programs, target="sm_80", num_workers=2)
    assert [k.prim_func for k in made] == programs and pool._idle
    with pytest.raises(TileError):
        tw.par_compile([*programs, kernels.gemm(1024, 1024, 1024, 256, 256, 256, 4)], target="sm_80")
    made = tw.par_compile([*programs, kernels.gemm(1024, 1024, 1024, 256, 256, 256, 4)], ignore_error=True)
    assert made[4] is None and all(made[:4])


def test_a_build_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(fanout, "MARGIN", 0.0)
    stop = threading.Event()
    try:
        found = list(fanout.fan_out(lambda n: stop.wait(20) if n else n, [0, 1, 0], seconds=0.1, count=3))
    finally:
        stop.set()
    assert found[0][1] == 0 and isinstance(found[1][1], TimeoutError) and found[2][1] == 0


def test_in_a_running_loop_and_off_the_main_thread(pool):
    async def inside():
        return [k.registers for _, k in fanout.fan_out(
            lambda b: tw.compile(scale(8192, b), target="sm_80"), [32, 64, 128, 256], count=2)]  # fmt: skip

    found = []
    with options(target="sm_80"):
        thread = threading.Thread(target=lambda: found.append(asyncio.run(inside())))
        thread.start()
        thread.join(60)
    assert len(found[0]) == 4 and pool._idle


def test_a_script_without_a_main_guard_runs_once_and_leaves_nothing(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        print("started", flush=True)
        import tileworkbench as tw, tileworkbench.language as T
        from tileworkbench.jitkernel import away

        @tw.jit(target="sm_80", out_idx=[-1])
        def scale(n, block):
            @T.prim_func
            def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
                with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
                    for i in T.Parallel(block):
                        B[bx * block + i] = A[bx * block + i] * 2.0
            return main

        made = scale.par_compile([{"n": 1024, "block": 32 * b} for b in (1, 2, 4, 8)], num_workers=2)
        print(len(made), all(k.registers for k in made), *[w._process.pid for w in away.pool._idle])
        """)
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TILEWORKBENCH_CACHE_DIR": str(tmp_path / "cache")}
    run = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=100)
    lines = run.stdout.splitlines()
    assert lines[0] == "started" and lines[1].startswith("4 True ") and len(lines) == 2, run.stdout + run.stderr
    for pid in map(int, lines[1].split()[2:]):
        end = time.monotonic() + 10
        while (alive := _alive(pid)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not alive


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
