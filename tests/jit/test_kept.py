"""Text found again on disk: what a hit skips, and what must never be taken for the same."""

from __future__ import annotations

import linecache

import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tests import kernels
from tileworkbench import options
from tileworkbench.errors import InternalError
from tileworkbench.ir.text import show
from tileworkbench.jitkernel import variant
from tileworkbench.jitkernel.timing import Timing
from tileworkbench.runtime import cache, digest
from tileworkbench.target import Target

pytest.importorskip("cuda.bindings", reason="NVRTC is not installed")
SM80 = Target.of("sm_80")


@pytest.fixture(autouse=True)
def own_cache(tmp_path):
    with options(cache_dir=tmp_path):
        yield tmp_path


@pytest.fixture
def no_passes(monkeypatch):
    def met(*_):
        raise InternalError("the passes ran")

    return lambda: monkeypatch.setattr(variant, "lower", met)


def build(tile, target=SM80):
    return variant.build(tile, target, Timing())


def tile(**changes):
    return kernels.gemm(**{"M": 256, "N": 256, "K": 256, **changes}).kernel


CELL = """
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        B[tx] = A[tx] * {factor}
        {more}
"""


def cell(name, factor="2.0", more="pass", before=""):
    """A kernel of a notebook cell with this file name."""
    text = before + CELL.format(factor=factor, more=more)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = {"T": T}
    exec(compile(text, name, "exec"), space)
    return T.prim_func(space["main"]).kernel


def test_a_hit_runs_no_pass_and_gives_the_same(no_passes):
    first = build(tile())
    no_passes()
    again = build(tile())
    assert again.source == first.source and again.binary.code == first.binary.code and again.binary.seconds == 0.0
    with pytest.raises(InternalError, match="the passes ran"):
        again.steps


def test_plan_and_trace_of_a_hit_are_those_of_the_build():
    first, again = (tw.compile(kernels.gemm(256, 256, 256), target="sm_80") for _ in range(2))
    assert again.variant._found is None is not first.variant._found
    assert repr(again.plan.notes) == repr(first.plan.notes) and again.source == first.source
    assert [d.chosen for d in again.plan.decisions] == [d.chosen for d in first.plan.decisions]
    assert [(s.name, s.after) for s in again.trace] == [(s.name, s.after) for s in first.trace]
    assert show(again.kernel) == show(first.kernel)


def test_the_same_cell_of_another_session_is_found_with_its_own_places(no_passes):
    first = build(cell("<session 1>"))
    no_passes()
    again = build(cell("<session 2>"))
    assert again.source.text == first.source.text
    lines = [loc.line for loc in first.source.line_map if loc]
    assert [loc.line for loc in again.source.line_map if loc] == lines and lines
    assert {loc.file for loc in again.source.line_map if loc} == {"<session 2>"}
    assert again.source.params[0].loc.file == "<session 2>"


@pytest.mark.parametrize(
    "other",
    [
        lambda: cell("<cell>", factor="3.0"),
        lambda: cell("<cell>", before="\n"),  # a line lower: places differ
        lambda: cell("<cell>").with_(attrs={"build": {"fast_math": True}}),
        lambda: cell("<cell>").with_(name="other"),
        lambda: cell("<cell>").with_(outputs=(1,)),
        lambda: cell("<cell>").with_(attrs={**cell("<cell>").attrs, "prelude": "__device__ int f() { return 1; }"}),
    ],
)
def test_what_changes_the_result_is_built_anew(no_passes, other):
    build(cell("<cell>"))
    no_passes()
    with pytest.raises(InternalError, match="the passes ran"):
        build(other())


@pytest.mark.parametrize("target", ["sm_80/RTX3090", "sm_90a", "sm_80/H200"])
def test_targets_have_their_own(no_passes, target):
    build(cell("<cell>"))
    no_passes()
    with pytest.raises(InternalError, match="the passes ran"):
        build(cell("<cell>"), Target.of(target))


def test_other_versions_of_this_package_and_other_options_have_their_own(no_passes, monkeypatch):
    build(cell("<cell>"))
    no_passes()
    build(cell("<cell>"))
    with options(unroll_limit=7), pytest.raises(InternalError, match="the passes ran"):
        build(cell("<cell>"))
    monkeypatch.setattr(digest, "generator", lambda: "0" * 64)
    with pytest.raises(InternalError, match="the passes ran"):
        build(cell("<cell>"))


def test_text_with_a_file_name_in_it_is_not_kept(no_passes):
    first = build(cell("<session 1>", more="T.device_assert(A[tx] > 0.0, 'positive')"))
    assert "<session 1>" in first.source.text
    again = build(cell("<session 2>", more="T.device_assert(A[tx] > 0.0, 'positive')"))
    assert "<session 2>" in again.source.text and "<session 1>" not in again.source.text


def test_a_damaged_entry_is_built_anew(own_cache):
    first = build(cell("<cell>"))
    for path in own_cache.glob("*.twb"):
        data = bytearray(path.read_bytes())
        data[-3] ^= 1
        path.write_bytes(data)
    again = build(cell("<cell>"))
    assert again._found is not None and again.source == first.source and again.binary.code == first.binary.code
    assert build(cell("<cell>"))._found is None


@pytest.mark.parametrize("text", ["", "[]", '[["runtime.binary:Binary"],[[0]],["r",0]]', '[[],[],["t"]]'])
def test_an_entry_of_another_form_counts_as_absent(own_cache, text):
    build(cell("<cell>"))
    disk = cache.default()
    for path in own_cache.glob("*.twb"):
        entry = disk.load(path.stem)
        if "source" in entry.parts:
            disk.store(path.stem, entry.meta, {"source": text.encode()})
    assert build(cell("<cell>"))._found is not None


def test_entries_that_changed_places_are_built_anew(own_cache):
    first, other = build(cell("<cell>")), build(cell("<cell>", factor="3.0"))
    disk = cache.default()
    entries = {p.stem: disk.load(p.stem) for p in own_cache.glob("*.twb")}
    (one, a), (two, b) = [(key, e) for key, e in entries.items() if "source" in e.parts]
    disk.store(one, b.meta, b.parts)
    disk.store(two, a.meta, a.parts)
    assert build(cell("<cell>")).binary.code == first.binary.code
    assert build(cell("<cell>", factor="3.0")).binary.code == other.binary.code != first.binary.code


def test_without_a_cache_nothing_is_kept(own_cache):
    with options(cache=False):
        build(cell("<cell>"))
        assert build(cell("<cell>"))._found is not None
    assert not list(own_cache.iterdir())
