"""A private folder reached through its handle: who may write it is checked, and no link is followed inside."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

_POSIX = os.name == "posix"
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)
TEMPORARY = ".tmp-"


class Untrusted(OSError):
    """Somebody else could write here; the text says where and how to mend it."""


@contextlib.contextmanager
def private(path: Path) -> Iterator[Folder]:
    """Opens `path`, made with mode 0700 where absent. Untrusted when it or a folder above it could be changed by
    another account, OSError when it cannot be had."""
    _make(path)
    if not _POSIX:
        yield Folder(path, None)
        return
    _check_links(path)
    real = Path(os.path.realpath(path))
    for above in reversed(real.parents):
        _check(above, os.stat(above), own=False)
    handle = os.open(real, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _check(real, os.fstat(handle), own=True)
        yield Folder(real, handle)
    finally:
        os.close(handle)


class Folder:
    """File operations by plain name, relative to an open directory handle where the system has them."""

    def __init__(self, path: Path, handle: int | None) -> None:
        self.path, self._handle = path, handle

    def read(self, name: str, limit: int) -> bytes | None:
        """Content of a regular file of ours of at most `limit` bytes; None for anything else. FileNotFoundError."""
        descriptor = os.open(self._at(name), _READ | _BINARY, dir_fd=self._handle)
        with os.fdopen(descriptor, "rb") as file:
            info = os.fstat(descriptor)
            mine = not _POSIX or (info.st_uid == os.geteuid() and not info.st_mode & 0o022)
            if not stat.S_ISREG(info.st_mode) or not mine or info.st_size > limit:
                return None
            return file.read(limit + 1)

    def write(self, name: str, parts: list[bytes]) -> None:
        """Publishes a whole file under `name` at once. There is no fsync: a file torn by a crash of the machine
        fails its digest and counts as absent."""
        temporary = f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
        descriptor = os.open(self._at(temporary), _CREATE | _BINARY, 0o600, dir_fd=self._handle)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(parts)
            self._replace(temporary, name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(self._at(temporary), dir_fd=self._handle)
            raise

    def remove(self, name: str) -> None:
        """Removes whatever stands under `name`; links are removed, not followed. What cannot be removed stays."""
        with contextlib.suppress(OSError):
            if stat.S_ISDIR(self.stat(name).st_mode):
                shutil.rmtree(self.path / name, ignore_errors=True)
            else:
                os.unlink(self._at(name), dir_fd=self._handle)

    def touch(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.utime(self._at(name), dir_fd=self._handle)

    def stat(self, name: str) -> os.stat_result:
        return os.lstat(self._at(name), dir_fd=self._handle)

    def names(self) -> list[str]:
        return os.listdir(self.path if self._handle is None else self._handle)

    def open_lock(self, name: str) -> int:
        """A descriptor of an empty file that is made where absent."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        return os.open(self._at(name), flags, 0o600, dir_fd=self._handle)

    def _replace(self, source: str, target: str) -> None:
        try:
            self._rename(source, target)
        except (IsADirectoryError, PermissionError):
            self.remove(target)  # a folder stands in the way
            self._rename(source, target)

    def _rename(self, source: str, target: str) -> None:
        os.replace(self._at(source), self._at(target), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def _at(self, name: str) -> str:
        return name if self._handle is not None else str(self.path / name)


def _make(path: Path) -> None:
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for part in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o700)


def _check_links(path: Path) -> None:
    for part in (path, *path.parents):
        info = os.lstat(part)
        if stat.S_ISLNK(info.st_mode) and info.st_uid not in (0, os.geteuid()):
            raise Untrusted(f"{part} is a link of another account")


def _check(path: Path, info: os.stat_result, own: bool) -> None:
    owners = (os.geteuid(),) if own else (0, os.geteuid())
    if info.st_uid not in owners:
        raise Untrusted(f"{path} belongs to another account")
    sticky_parent = not own and info.st_mode & stat.S_ISVTX  # in such a folder others cannot rename what is ours
    if info.st_mode & 0o022 and not sticky_parent:
        raise Untrusted(f"{path} can be written by other accounts (chmod go-w {path})")
