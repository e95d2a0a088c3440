from __future__ import annotations

import os
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tileworkbench.codegen.source import Fact, Source
from tileworkbench.errors import BuildError, TargetError

pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
from tileworkbench.runtime import build, digest, nvrtc
from tileworkbench.runtime.cache import DiskCache

TEXT = 'extern "C" __global__ void k(float* a) { a[threadIdx.x] = 2.0f; }\n'
SOURCE = Source(text=TEXT, entry="k", dialect="cuda", arch="sm_90a", params=(), args=(), grid=(1,), threads=32)


@pytest.fixture
def disk(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that really reached the compiler."""
    texts: list[str] = []
    real = nvrtc.build
    monkeypatch.setattr(nvrtc, "build", lambda source, key="": (texts.append(source.text), real(source, key))[1])
    return texts


def test_the_second_build_comes_from_the_disk_whole(disk: DiskCache, compiled: list[str]) -> None:
    first, second = build.build(SOURCE, disk), build.build(SOURCE, disk)
    assert compiled == [TEXT]
    assert first == second and second.seconds == 0.0 and first.seconds > 0.0
    assert second.ptx == first.ptx and second.key == digest.build_key(SOURCE, first.compiler + " ")


@pytest.mark.parametrize(
    "change",
    [
        {"text": TEXT.replace("2.0f", "3.0f")},
        {"arch": "sm_80"},
        {"options": (("fast_math", "1"),)},
        {"headers": (("own.h", "int f();"),)},
        {"headers": (("own.h", "int g();"),)},
        {"facts": (Fact(("eq", "M", 8), "M is 8"),)},
        {"options": (("max_registers", "64"),)},
    ],
)
def test_whatever_matters_is_in_the_key(change: dict[str, object]) -> None:
    assert digest.build_key(SOURCE, "c") != digest.build_key(replace(SOURCE, **change), "c")
    assert digest.build_key(SOURCE, "c") != digest.build_key(SOURCE, "d")
    assert digest.build_key(replace(SOURCE, **change), "c") == digest.build_key(replace(SOURCE, **change), "c")


def test_options_spelled_out_are_the_same_build() -> None:
    assert digest.build_key(SOURCE, "c") == digest.build_key(replace(SOURCE, options=(("fast_math", "0"),)), "c")


def test_threads_share_builds(disk: DiskCache, compiled: list[str]) -> None:
    sources = [replace(SOURCE, text=TEXT.replace("2.0f", f"{n}.5f")) for n in range(4)]
    got: list[bytes] = []
    work = [threading.Thread(target=lambda i=i: got.append(build.build(sources[i % 4], disk).code)) for i in range(16)]
    for t in work:
        t.start()
    for t in work:
        t.join()
    assert len(got) == 16 and len(set(got)) == 4 and len(compiled) == 4


def test_a_build_is_kept_under_the_compiler_that_made_it(
    disk: DiskCache, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = iter(["nvrtc 1.0.0"])  # what a stray wheel says before the library is loaded
    monkeypatch.setattr(nvrtc, "version", lambda: next(versions, "nvrtc 2.0"))
    made = build.build(SOURCE, disk)
    assert made.key == digest.build_key(SOURCE, "nvrtc 2.0 ")
    assert build.load(disk, digest.build_key(SOURCE, "nvrtc 1.0.0 ")) is None
    assert build.build(SOURCE, disk) == made and len(compiled) == 1


def test_failures_are_not_kept(disk: DiskCache) -> None:
    bad = replace(SOURCE, text=TEXT.replace("2.0f", "missing"))
    for _ in range(2):
        with pytest.raises(BuildError, match="missing"):
            build.build(bad, disk)
    assert disk.stats().entries == 0
    with pytest.raises(TargetError, match="metal"):
        build.build(replace(SOURCE, dialect="metal"), disk)


def test_an_entry_of_another_form_is_a_miss(disk: DiskCache, compiled: list[str]) -> None:
    made = build.build(SOURCE, disk)
    disk.store(made.key, {"arch": "sm_90a"}, {"code": b"x"})
    assert build.load(disk, made.key) is None
    assert build.build(SOURCE, disk) == made and len(compiled) == 2


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts this process's files as Linux shows them")
def test_builds_leave_no_files_threads_or_handles(
    disk: DiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    build.build(SOURCE, disk)

    def held() -> tuple[int, int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(os.listdir(temporary))

    before = held()
    for n in range(8):
        build.build(replace(SOURCE, text=TEXT.replace("2.0f", f"{n}.25f")), disk)
    assert held() == before and len(os.listdir(temporary)) == 0
