from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from tileworkbench.options import options
from tileworkbench.runtime import cache, folder
from tileworkbench.runtime.cache import CacheWarning, DiskCache

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")
pytestmark = pytest.mark.filterwarnings("error::tileworkbench.runtime.cache.CacheWarning")

META = {"arch": "sm_90a", "registers": 42, "spills": None}


def key(n: int) -> str:
    return f"{n:064x}"


def parts(n: int, size: int = 3000) -> dict[str, bytes]:
    return {"code": random.Random(n).randbytes(size), "log": b"log", "empty": b""}


def file_of(disk: DiskCache, n: int) -> Path:
    return disk.path / (key(n) + cache.SUFFIX)


@pytest.fixture
def disk(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "deep" / "cache")


def test_what_is_stored_is_loaded(disk: DiskCache) -> None:
    assert disk.load(key(1)) is None
    assert disk.store(key(1), META, parts(1))
    entry = disk.load(key(1))
    assert entry.meta == META and entry.parts == parts(1)
    assert disk.stats().entries == 1 and disk.stats().bytes == file_of(disk, 1).stat().st_size
    assert disk.clear() == 1 and disk.load(key(1)) is None and disk.stats().entries == 0


@posix
def test_folders_and_files_are_private(disk: DiskCache) -> None:
    disk.store(key(1), META, parts(1))
    assert disk.path.stat().st_mode & 0o777 == 0o700 and disk.path.parent.stat().st_mode & 0o777 == 0o700
    assert file_of(disk, 1).stat().st_mode & 0o777 == 0o600


def test_keys_are_digests_only(disk: DiskCache) -> None:
    for bad in ("../../etc/passwd", "A" * 64, "", key(1) + "\n"):
        with pytest.raises(ValueError, match="64 hexadecimal"):
            disk.load(bad)


def test_every_truncation_and_every_flipped_byte_is_a_miss(disk: DiskCache) -> None:
    disk.store(key(1), META, parts(1, 40))
    whole = file_of(disk, 1).read_bytes()
    for cut in range(len(whole)):
        assert cache.decode(key(1), whole[:cut]) is None
    for at in range(len(whole)):
        flipped = bytes([*whole[:at], whole[at] ^ (1 << at % 8), *whole[at + 1 :]])
        assert cache.decode(key(1), flipped) is None
    assert cache.decode(key(1), whole + b"\0") is None
    assert cache.decode(key(2), whole) is None
    assert cache.decode(key(1), whole).parts == parts(1, 40)


def test_a_manifest_that_does_not_add_up_is_a_miss() -> None:
    import hashlib
    import json

    def entry(manifest: object, body: bytes) -> bytes:
        text = json.dumps(manifest).encode()
        rest = len(text).to_bytes(8, "little") + text + body
        return cache.MAGIC + hashlib.sha256(rest).digest() + rest

    good = {"key": key(1), "meta": {}, "parts": [["code", 3]]}
    assert cache.decode(key(1), entry(good, b"abc")).parts == {"code": b"abc"}
    for body in (b"ab", b"abcd", b""):
        assert cache.decode(key(1), entry(good, body)) is None
    for bad in (
        {**good, "meta": []},
        {**good, "parts": 3},
        {**good, "parts": [["code", "3"]]},
        [],
        "x",
        {"key": key(1)},
    ):
        assert cache.decode(key(1), entry(bad, b"abc")) is None


def test_a_file_beyond_the_limit_is_not_read(disk: DiskCache) -> None:
    disk.store(key(1), META, parts(1))
    size = file_of(disk, 1).stat().st_size
    with folder.private(disk.path) as place:
        assert place.read(key(1) + cache.SUFFIX, size - 1) is None
        assert len(place.read(key(1) + cache.SUFFIX, size)) == size


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _swap(path: Path) -> None:
    path.write_bytes((path.parent / (key(2) + cache.SUFFIX)).read_bytes())


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".aside"))
    path.symlink_to(path.with_suffix(".aside"))


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)
    (path / "inside" / "file").write_text("x")


def _huge(path: Path) -> None:
    os.truncate(path, cache.LARGEST_ENTRY + 1)


def _writable(path: Path) -> None:
    path.chmod(0o666)


@posix
@pytest.mark.parametrize("damage", [_truncate, _empty, _swap, _link, _fifo, _directory, _huge, _writable])
def test_damage_is_a_miss_and_is_mended(disk: DiskCache, damage: Callable[[Path], None]) -> None:
    disk.store(key(1), META, parts(1))
    disk.store(key(2), META, parts(2))
    damage(file_of(disk, 1))
    assert disk.load(key(1)) is None
    assert not os.path.lexists(file_of(disk, 1))
    assert disk.store(key(1), META, parts(1)) and disk.load(key(1)).parts == parts(1)
    assert disk.load(key(2)).parts == parts(2)


@posix
def test_a_folder_in_the_way_of_a_store_is_replaced(disk: DiskCache) -> None:
    disk.store(key(1), META, parts(1))
    _directory(file_of(disk, 1))
    assert disk.store(key(1), META, parts(1)) and disk.load(key(1)).parts == parts(1)


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_others_can_write_is_refused_with_one_warning(disk: DiskCache, mode: int) -> None:
    disk.store(key(1), META, parts(1))
    disk.path.chmod(mode)
    with pytest.warns(CacheWarning, match="chmod go-w") as seen:
        assert disk.load(key(1)) is None
        assert not disk.store(key(2), META, parts(2))
    assert len(seen) == 1
    assert "written by other accounts" in disk.stats().trouble


@posix
def test_a_parent_others_can_write_is_refused(disk: DiskCache) -> None:
    disk.store(key(1), META, parts(1))
    disk.path.parent.chmod(0o777)
    with pytest.warns(CacheWarning, match="deep can be written"):
        assert disk.load(key(1)) is None
    disk.path.parent.chmod(0o1777)  # sticky, as /tmp: others cannot rename what is ours
    assert disk.load(key(1)) is not None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("which", ["folder", "parent", "link", "file"])
def test_what_belongs_to_another_account_is_refused(disk: DiskCache, which: str, tmp_path: Path) -> None:
    disk.store(key(1), META, parts(1))
    if which == "file":
        os.chown(file_of(disk, 1), 1234, 1234)
        assert disk.load(key(1)) is None
        return
    if which == "link":
        (tmp_path / "link").symlink_to(disk.path)
        os.lchown(tmp_path / "link", 1234, 1234)
        disk.path = tmp_path / "link"
    else:
        os.chown(disk.path if which == "folder" else disk.path.parent, 1234, 1234)
    with pytest.warns(CacheWarning, match="another account"):
        assert disk.load(key(1)) is None


@pytest.mark.parametrize("number", ["ENOSPC", "EACCES", "EBUSY", "ESTALE", "EROFS"])
@pytest.mark.parametrize("call", ["open", "replace", "listdir", "mkdir"])
def test_trouble_with_the_disk_costs_one_warning(
    disk: DiskCache, number: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    def fail(*_: object, **__: object) -> None:
        raise OSError(getattr(errno, number), os.strerror(getattr(errno, number)))

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with monkeypatch.context() as patch:
            patch.setattr(folder.os, call, fail)
            disk.store(key(1), META, parts(1))
            disk.store(key(2), META, parts(2))
            disk.load(key(3))
            with disk.building(key(1)):
                pass
    assert len([w for w in seen if w.category is CacheWarning]) == 1
    left = os.listdir(disk.path) if disk.path.exists() else []
    assert not [name for name in left if name.startswith(folder.TEMPORARY)]


def test_the_options_say_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with options(cache=False):
        assert cache.default().path is None and cache.default().load(key(1)) is None
    with options(cache_dir=tmp_path / "mine", cache_size="1MiB"):
        assert cache.default().path == tmp_path / "mine" and cache.default().limit == 1 << 20
    monkeypatch.delenv("TILEWORKBENCH_CACHE_DIR", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.warns(CacheWarning, match="no home folder") as seen:
        assert cache.default().load(key(1)) is None and cache.default().load(key(2)) is None
    assert len(seen) == 1


def test_the_oldest_go_first_and_the_limit_holds(disk: DiskCache) -> None:
    disk.limit = 20_000
    for n in range(8):
        disk.store(key(n), META, parts(n, 3000))
        os.utime(file_of(disk, n), (1000 + n, 1000 + n))
    disk.load(key(3))  # used again: now the youngest
    disk.store(key(9), META, parts(9, 3000))
    left = [n for n in range(10) if file_of(disk, n).exists()]
    assert disk.stats().bytes <= disk.limit
    assert left == [3, 5, 6, 7, 9] or left == [3, 4, 5, 6, 7, 9]
    assert not disk.store(key(10), META, parts(10, 30_000))


def test_leftovers_go_after_a_day(disk: DiskCache) -> None:
    disk.store(key(1), META, parts(1))
    old, young = disk.path / (folder.TEMPORARY + "1-a"), disk.path / (folder.TEMPORARY + "2-b")
    old.write_bytes(b"x")
    young.write_bytes(b"x")
    os.utime(old, (time.time() - 25 * 3600,) * 2)
    disk.store(key(2), META, parts(2))
    assert not old.exists() and young.exists()


def _store_forever(path: Path, seed: int) -> None:
    disk = DiskCache(path)
    while True:
        disk.store(key(1), META, parts(1, 200_000))
        disk.store(key(2 + seed % 5), META, parts(2 + seed % 5, 50_000))


@posix
def test_kill_at_random_moments_never_leaves_a_wrong_entry(disk: DiskCache) -> None:
    rng, fork = random.Random(7), multiprocessing.get_context("fork")
    loaded = 0
    for i in range(60):
        child = fork.Process(target=_store_forever, args=(disk.path, i))
        child.start()
        time.sleep(rng.uniform(0, 0.02))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        for n in range(1, 7):
            entry = disk.load(key(n))
            assert entry is None or entry.parts == parts(n, 200_000 if n == 1 else 50_000)
            loaded += entry is not None
    assert loaded > 60
    start = time.monotonic()
    with disk.building(key(1), timeout=2.0):
        assert time.monotonic() - start < 2.0


def _die_at(path: Path, operation: int) -> None:
    """Stores once, killing itself just before its n-th file operation."""
    count = 0

    def trace(frame: object, event: str, function: object) -> None:
        nonlocal count
        if event == "c_call" and getattr(function, "__module__", "") in ("posix", "_io", None):
            if count == operation:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1

    sys.setprofile(trace)
    with DiskCache(path).building(key(1)):
        DiskCache(path).store(key(1), META, parts(1))
    sys.setprofile(None)
    os._exit(0)


def _kill_at_each_operation(path: Path) -> None:
    disk, fork = DiskCache(path), multiprocessing.get_context("fork")
    for operation in range(500):
        child = fork.Process(target=_die_at, args=(path, operation))
        child.start()
        child.join()
        entry = disk.load(key(1))
        assert entry is None or entry.parts == parts(1)
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL
        disk.clear()
    assert 20 < operation < 499
    assert disk.load(key(1)).parts == parts(1)


@posix
def test_kill_at_each_file_operation(disk: DiskCache) -> None:
    # From a fresh process: forking one that has run thousands of tests takes many times as long.
    killer = multiprocessing.get_context("spawn").Process(target=_kill_at_each_operation, args=(disk.path,))
    killer.start()
    killer.join()
    assert killer.exitcode == 0


def _rounds(path: Path, seed: int, failures: object) -> None:
    disk, rng = DiskCache(path), random.Random(seed)
    for _ in range(10):
        n = rng.randrange(3)
        entry = disk.load(key(n))
        if entry is not None and entry.parts != parts(n, 20_000):
            failures.value += 1
        disk.store(key(n), META, parts(n, 20_000))


@posix
def test_many_processes_one_key(disk: DiskCache) -> None:
    fork = multiprocessing.get_context("fork")
    failures = fork.Value("i", 0)
    children = [fork.Process(target=_rounds, args=(disk.path, i, failures)) for i in range(64)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert failures.value == 0 and all(child.exitcode == 0 for child in children)
    assert all(disk.load(key(n)).parts == parts(n, 20_000) for n in range(3))
    assert not [name for name in os.listdir(disk.path) if name.startswith(folder.TEMPORARY)]


def _build_once(path: Path, builds: object) -> None:
    disk = DiskCache(path)
    with disk.building(key(1)):
        if disk.load(key(1)) is None:
            time.sleep(0.05)
            with builds.get_lock():
                builds.value += 1
            disk.store(key(1), META, parts(1))


@posix
def test_one_process_builds_and_the_others_find_it(disk: DiskCache) -> None:
    fork = multiprocessing.get_context("fork")
    builds = fork.Value("i", 0)
    children = [fork.Process(target=_build_once, args=(disk.path, builds)) for _ in range(12)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert builds.value == 1
