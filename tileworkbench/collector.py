"""Python's cyclic collector, held back while a kernel is compiled.

Syntax trees and IR are many objects at a time and hardly any cycle. Every few hundred of them the collector looks for
cycles, and in the end through all that the program holds: on a first kernel found on disk that was most of the time.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_lock = threading.Lock()
_holding = 0
_was_on = False


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """No collection during the block, in any thread; reference counts free objects as ever. Blocks may nest."""
    global _holding, _was_on
    with _lock:
        if not _holding:
            _was_on = gc.isenabled()
            gc.disable()
        _holding += 1
    try:
        yield
    finally:
        with _lock:
            _holding -= 1
            if not _holding and _was_on:
                gc.enable()
