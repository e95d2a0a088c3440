"""Digests that go into cache keys."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..codegen.source import Source
from .buildoptions import BuildOptions

FORMAT = 1  # of the entries on disk
SUFFIXES = (".py", ".h", ".cuh", ".hip")
ROOMS = ("codegen", "ir", "language", "layout", "ops", "passes", "runtime", "target")


@functools.cache
def generator() -> str:
    """sha256 over each file that can change what a kernel becomes: those of the compiler's rooms and the top level."""
    root = Path(__file__).resolve().parent.parent
    return of(part for name in sorted(_files(root)) for part in (name.encode(), _content(f"{root}/{name}")))


def _content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _files(root: Path) -> Iterator[str]:
    yield from (name for name in os.listdir(root) if name.endswith(SUFFIXES))
    for room in ROOMS:
        for folder, _, names in os.walk(root / room):
            inside = os.path.relpath(folder, root).replace(os.sep, "/")
            yield from (f"{inside}/{name}" for name in names if name.endswith(SUFFIXES))


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
