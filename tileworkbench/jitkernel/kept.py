"""Generated text on disk by the kernel it was made of: a kernel met again skips the passes and the emission.

The key covers all that text hangs on: the tile-level kernel with its settings, the target, this package's own code, and
the libraries that fold its constants. Names of files are no part of it, since a cell has another one in every session;
text that shows such a name is not kept. A damaged entry counts as absent.
"""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np

from ..codegen.source import Source
from ..errors import InternalError
from ..ir.kernel import Kernel
from ..ir.plain import NotPlain, Plain, read
from ..options import options
from ..runtime import cache, digest
from ..target import Target

FORM = "source 1"  # of an entry


class Shelf:
    """Where one kernel's text lies in the user's disk cache; nothing is found and nothing kept where that is off or the
    kernel holds a user's function."""

    def __init__(self, tile: Kernel, target: Target) -> None:
        self._disk = cache.default()
        self._plain = _plain(tile, target) if self._disk.path is not None else None
        self._key = _key(self._plain) if self._plain is not None else ""

    def load(self) -> Source | None:
        """The text with this session's places."""
        entry = self._disk.load(self._key) if self._plain is not None else None
        if entry is None or self._plain is None or entry.meta != self._meta():
            return None
        try:
            found = read(entry.parts["source"].decode(), self._plain.files)
        except (InternalError, KeyError, UnicodeDecodeError):
            return None
        return found if isinstance(found, Source) else None

    def store(self, source: Source) -> None:
        if self._plain is None or any(name in source.text for name in self._plain.files if name):
            return
        try:
            made = Plain(source, self._plain.files)
        except NotPlain:
            return
        if made.files == self._plain.files:  # else it speaks of a file that the kernel does not know
            self._disk.store(self._key, self._meta(), {"source": made.text.encode()})

    def _meta(self) -> dict[str, str]:
        return {"form": FORM, "kernel": self._plain.digest if self._plain is not None else ""}


def _plain(tile: Kernel, target: Target) -> Plain | None:
    try:
        return Plain((tile, target))
    except NotPlain:
        return None


def _key(plain: Plain) -> str:
    words = (
        FORM, digest.generator(), options.digest(), plain.digest, str(len(plain.files)), np.__version__,
        ml_dtypes.__version__, sys.version,
    )  # fmt: skip
    return digest.of(word.encode() for word in words)
