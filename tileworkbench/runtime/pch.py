"""Folders for NVRTC's precompiled headers: private to this process, gone when it ends."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import threading

_lock = threading.Lock()


def pch_dir(digest: str) -> str | None:
    """The folder of one set of headers, or None where no private folder can be made. NVRTC's own default is a
    predictable name under /tmp, which another account could prepare."""
    with _lock:
        root = _root(os.getpid())
        if root is None:
            return None
        folder = os.path.join(root, digest[:32])
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError:
            return None
        return folder


@functools.cache
def _root(pid: int) -> str | None:  # by process: a forked child must not share or remove its parent's folder
    try:
        root = tempfile.mkdtemp(prefix="tileworkbench-pch-")
    except OSError:
        return None
    atexit.register(_remove, root, pid)
    return root


def _remove(root: str, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(root, ignore_errors=True)
