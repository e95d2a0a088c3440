"""Builds on disk: one file an entry, a digest over all of it, published at once, never pickled.

An entry is the magic, sha256 of the rest, the manifest's length, the manifest (JSON) and the parts one after another.
Whatever is damaged, swapped or not ours counts as absent. Trouble with the disk costs one warning and never a build.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..options import options
from . import folder
from .folder import Folder
from .locks import file_lock

MAGIC = b"tileworkbench cache 1\n"
SUFFIX = ".twb"
LARGEST_ENTRY = 256 << 20  # bytes
LIMIT = 1 << 30  # bytes of all entries
LEFTOVER_AGE = 24 * 3600.0  # seconds until a temporary file is nobody's
TOUCH_AGE = 3600.0  # seconds; a hit on an older entry moves it to the end of the eviction queue
_KEY = re.compile(r"[0-9a-f]{64}")


class CacheWarning(UserWarning):
    """The disk cache cannot be used; builds go on without it."""


@dataclass(frozen=True)
class Entry:
    meta: dict[str, Any]
    parts: dict[str, bytes]


@dataclass(frozen=True)
class Stats:
    """`path` is None where there is no cache, and `trouble` says why; `bytes` on disk, `oldest` a Unix time."""

    path: Path | None
    entries: int = 0
    bytes: int = 0
    limit: int = LIMIT
    oldest: float | None = None
    trouble: str = ""


@dataclass
class DiskCache:
    """A folder of entries. All methods are safe from many threads and processes; none of them raises for the disk."""

    path: Path | None
    limit: int = LIMIT
    trouble: str = ""
    _warned: bool = field(default=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def load(self, key: str) -> Entry | None:
        """The entry of `key`, or None; a damaged one is removed."""
        _check_key(key)
        with self._opened() as place:
            if place is None:
                return None
            try:
                data = place.read(key + SUFFIX, LARGEST_ENTRY)
            except FileNotFoundError:
                return None
            except OSError:
                data = None  # a link, a device, an unreadable file
            entry = None if data is None else decode(key, data)
            if entry is None:
                place.remove(key + SUFFIX)
            else:
                self._touch(place, key + SUFFIX)
            return entry
        return None

    def store(self, key: str, meta: dict[str, Any], parts: dict[str, bytes]) -> bool:
        """Publishes an entry; True when it is on disk now."""
        _check_key(key)
        data = encode(key, meta, parts)
        if sum(map(len, data)) > min(LARGEST_ENTRY, self.limit):
            return False
        with self._opened() as place:
            if place is None:
                return False
            place.write(key + SUFFIX, data)
            self._tidy(place, key + SUFFIX)
            return True
        return False

    @contextlib.contextmanager
    def building(self, key: str, timeout: float = 60.0) -> Iterator[None]:
        """Held by the one process that builds `key`, so that the others find its entry. Where locks do not work, or the
        holder takes longer than `timeout` seconds, everybody builds: slower, never wrong."""
        _check_key(key)
        descriptor = None
        with self._opened() as place:
            # A fixed set of lock files: removing one that somebody waits for would split the lock in two. Enough of
            # them that the processes of a search seldom wait for a build that is not theirs.
            descriptor = None if place is None else place.open_lock(f"lock-{int(key[:3], 16) % 512:03d}")
        with file_lock(descriptor, timeout):
            yield

    def stats(self) -> Stats:
        """Number and bytes of the entries, and where they lie."""
        with self._opened() as place:
            if place is not None:
                files = _entries(place)
                return Stats(
                    place.path,
                    len(files),
                    sum(s.st_size for _, s in files),
                    self.limit,
                    min((s.st_mtime for _, s in files), default=None),
                )
        return Stats(None, limit=self.limit, trouble=self.trouble)

    def clear(self) -> int:
        """Removes every entry and leftover; the number of entries removed."""
        with self._opened() as place:
            if place is not None:
                count = len(_entries(place))
                for name in place.names():
                    if name.endswith(SUFFIX) or name.startswith(folder.TEMPORARY):
                        place.remove(name)
                return count
        return 0

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Folder | None]:
        """The folder, checked anew at every use; None, after one warning, where it cannot be used. OSErrors of the body
        end here too."""
        if self.path is None:
            if self.trouble:
                self._warn(self.trouble)
            yield None
            return
        with contextlib.ExitStack() as stack:
            try:
                place = stack.enter_context(folder.private(self.path))
            except OSError as error:
                self._warn(str(error))
                place = None
            try:
                yield place
            except OSError as error:
                self._warn(str(error))

    def _warn(self, trouble: str) -> None:
        with self._lock:
            first, self._warned, self.trouble = not self._warned, True, trouble
        if first:
            warnings.warn(f"the disk cache is not used: {trouble}", CacheWarning, stacklevel=4)

    def _touch(self, place: Folder, name: str) -> None:
        with contextlib.suppress(OSError):
            if time.time() - place.stat(name).st_mtime > TOUCH_AGE:
                place.touch(name)

    def _tidy(self, place: Folder, newest: str) -> None:
        """Removes leftovers of dead writers, and the oldest entries until the rest fits the limit."""
        files = _entries(place)
        total = sum(info.st_size for _, info in files)
        for name, info in sorted(files, key=lambda f: f[1].st_mtime):
            if total <= self.limit:
                break
            if name != newest:
                place.remove(name)
                total -= info.st_size
        for name in place.names():
            with contextlib.suppress(OSError):
                if name.startswith(folder.TEMPORARY) and time.time() - place.stat(name).st_mtime > LEFTOVER_AGE:
                    place.remove(name)


def encode(key: str, meta: dict[str, Any], parts: dict[str, bytes]) -> list[bytes]:
    """The pieces of an entry's file in order."""
    manifest = {"key": key, "meta": meta, "parts": [[name, len(data)] for name, data in parts.items()]}
    text = json.dumps(manifest, sort_keys=True, allow_nan=False).encode()
    body = [len(text).to_bytes(8, "little"), text, *parts.values()]
    sha = hashlib.sha256()
    for part in body:
        sha.update(part)
    return [MAGIC, sha.digest(), *body]


def decode(key: str, data: bytes) -> Entry | None:
    """The entry in `data`, or None when it is damaged or another key's. Nothing is parsed before its digest holds."""
    start = len(MAGIC) + 32
    if not data.startswith(MAGIC) or hashlib.sha256(data[start:]).digest() != data[len(MAGIC) : start]:
        return None
    at = start + 8
    end = at + int.from_bytes(data[start:at], "little")
    try:
        manifest = json.loads(data[at:end])
        if manifest["key"] != key or not isinstance(manifest["meta"], dict):
            return None
        parts = {}
        for name, size in manifest["parts"]:
            parts[name], end = data[end : end + size], end + size
        return Entry(manifest["meta"], parts) if end == len(data) else None
    except (ValueError, KeyError, TypeError):
        return None


def default() -> DiskCache:
    """The user's cache as the options `cache`, `cache_dir` and `cache_size` say now."""
    if not options.cache:
        return _shared(None, 0, "")
    if options.origin("cache_dir") == "default" and not os.path.isdir(os.path.expanduser("~")):
        return _shared(None, 0, "there is no home folder (set TILEWORKBENCH_CACHE_DIR to a folder)")
    return _shared(Path(os.path.abspath(options.cache_dir)), options.cache_size, "")


@functools.cache
def _shared(path: Path | None, limit: int, trouble: str) -> DiskCache:
    """One object a place, so that its trouble is told once a process."""
    return DiskCache(path, limit, trouble)


def _entries(place: Folder) -> list[tuple[str, os.stat_result]]:
    files = []
    for name in place.names():
        if name.endswith(SUFFIX):
            with contextlib.suppress(OSError):
                files.append((name, place.stat(name)))
    return files


def _check_key(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise ValueError(f"a cache key is 64 hexadecimal digits, not {key!r}")
