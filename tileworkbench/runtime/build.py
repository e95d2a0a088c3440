"""One call from `Source` to `Binary`: from the disk where it is known, else by the dialect's compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from ..codegen.source import Source
from ..errors import TargetError
from . import cache, clang, cudaheaders, digest, nvrtc
from .binary import Binary
from .cache import DiskCache, Entry
from .locks import thread_lock

_TEXTS = ("log", "ptx")


def build(source: Source, disk: DiskCache | None = None) -> Binary:
    """Device code of `source`. `disk` is the cache to use; None is the user's own. BuildError, TargetError, OptionError
    and MissingDependency as the compilers raise them."""
    compile_, compiler = _compiler(source)
    disk = cache.default() if disk is None else disk
    key = digest.build_key(source, compiler)
    if known := load(disk, key):
        return known
    with thread_lock(key), disk.building(key):
        if known := load(disk, key):
            return known
        made = compile_(source, key)
        # The compiler's version may be known better once it is loaded; an entry never stands under another's name.
        made = replace(made, key=digest.build_key(source, _compiler(source)[1]))
        store(disk, made)
        return made


def load(disk: DiskCache, key: str) -> Binary | None:
    """The build kept under `key`; None where there is none, or one of another version's form."""
    entry = disk.load(key)
    return None if entry is None else _from_entry(key, entry)


def store(disk: DiskCache, binary: Binary) -> bool:
    """Keeps a build under its key; True when it is on disk now."""
    meta = {f.name: getattr(binary, f.name) for f in fields(Binary) if f.name not in ("code", "seconds", *_TEXTS)}
    parts = {"code": binary.code, **{n: t.encode() for n in _TEXTS if (t := getattr(binary, n)) is not None}}
    return disk.store(binary.key, meta, parts)


def _from_entry(key: str, entry: Entry) -> Binary | None:
    values: dict[str, Any] = dict(entry.meta)
    names = {f.name for f in fields(Binary)} - {"code", "seconds", *_TEXTS}
    if set(values) != names or "code" not in entry.parts or values["key"] != key:
        return None
    values.update({n: entry.parts[n].decode() for n in _TEXTS if n in entry.parts})
    values["warnings"] = tuple(values["warnings"])
    return Binary(code=entry.parts["code"], **values)


def _compiler(source: Source) -> tuple[Callable[[Source, str], Binary], str]:
    if source.dialect == "cuda":
        return nvrtc.build, f"{nvrtc.version()} {cudaheaders.fingerprint(cudaheaders.wanted(source))}"
    if source.dialect == "hip":
        return clang.build, clang.version(clang.clang(source.arch))
    raise TargetError(f"there is no device compiler for {source.dialect!r} text", rule="cuda or hip")
