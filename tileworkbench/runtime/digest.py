"""Digests that go into cache keys."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

from ..codegen.source import Source
from .buildoptions import BuildOptions

FORMAT = 1  # of the entries on disk


@functools.cache
def generator() -> str:
    """sha256 over each file of this package that can change what a kernel becomes: Python and device headers."""
    root = Path(__file__).resolve().parent.parent
    files = sorted(p for p in root.rglob("*") if p.suffix in {".py", ".h", ".cuh", ".hip"} and p.is_file())
    return of(part for path in files for part in (path.relative_to(root).as_posix().encode(), path.read_bytes()))


def build_key(source: Source, compiler: str) -> str:
    """The name of a build: same key, same code. The text holds the assumed facts' consequences, but a fact is kept too,
    since two variants of one text may not stand for one another."""
    options = BuildOptions.parse(source.options).pairs()
    headers = (part for header in source.headers for part in header)
    words = (
        str(FORMAT),
        generator(),
        compiler,
        source.dialect,
        source.arch,
        source.entry,
        repr(options),
        repr(source.facts),
        source.text,
        *headers,
    )
    return of(word.encode() for word in words)


def of(parts: Iterable[bytes]) -> str:
    """sha256 over the parts, each with its length so that no two lists read alike; hexadecimal."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(len(part).to_bytes(8, "little"))
        sha.update(part)
    return sha.hexdigest()
