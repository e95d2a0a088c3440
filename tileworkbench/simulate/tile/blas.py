"""C += A · B in place, by the BLAS that NumPy brought along, and how many threads that BLAS uses.

NumPy itself can only write a product to other memory and add it afterwards, which for tiles of a few dozen columns
takes half as long again. Where its BLAS cannot be found or does not pass its test, `multiply_add` is None."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MultiplyAdd = Callable[[np.ndarray, np.ndarray, np.ndarray], None]
_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112
_NAMES = (
    ("scipy_cblas_sgemm64_", ctypes.c_int64),
    ("cblas_sgemm64_", ctypes.c_int64),
    ("scipy_cblas_sgemm", ctypes.c_int32),
)


def _libraries() -> list[Path]:
    package = Path(np.__file__).parent
    folders = (package.parent / "numpy.libs", package / ".dylibs")
    return sorted(path for folder in folders if folder.is_dir() for path in folder.glob("*openblas*"))


def _opened() -> list[ctypes.CDLL]:
    found = []
    for path in _libraries():
        with contextlib.suppress(OSError):
            found.append(ctypes.CDLL(str(path)))
    return found


_LIBRARIES = _opened()


def _symbol() -> tuple[Any, Any] | None:
    for library in _LIBRARIES:
        for name, integer in _NAMES:
            if hasattr(library, name):
                return getattr(library, name), integer
    return None


class SingleThread:
    """`with single_thread:` keeps that BLAS to the calling thread. Its own threads meet by spinning, several times in
    one small product, which a busy machine makes hundreds of times slower. Blocks may nest and overlap."""

    def __init__(self) -> None:
        self._lock, self._open, self._before = threading.Lock(), 0, 1
        self._get, self._set = self._functions()
        self.works = self._set is not None

    @staticmethod
    def _functions() -> tuple[Any, Any]:
        for library in _LIBRARIES:
            for prefix, end in (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", "")):
                names = [f"{prefix}openblas_{verb}_num_threads{end}" for verb in ("get", "set")]
                if all(hasattr(library, name) for name in names):
                    return getattr(library, names[0]), getattr(library, names[1])
        return None, None

    def __enter__(self) -> None:
        with self._lock:
            if self.works and self._open == 0:
                self._before = self._get()
                self._set(1)
            self._open += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._open -= 1
            if self.works and self._open == 0:
                self._set(self._before)


single_thread = SingleThread()


def _operand(x: np.ndarray) -> tuple[np.ndarray, int, int]:
    """A matrix as BLAS takes it: the array (copied if need be), plain or transposed, and its leading dimension."""
    rows, columns = x.strides
    item = x.itemsize
    if columns == item and rows % item == 0 and rows >= x.shape[1] * item:
        return x, _PLAIN, rows // item
    if rows == item and columns % item == 0 and columns >= x.shape[0] * item:
        return x, _TRANSPOSED, columns // item
    copied = np.ascontiguousarray(x)
    return copied, _PLAIN, max(copied.shape[1], 1)


def _load() -> MultiplyAdd | None:
    found = _symbol()
    if found is None:
        return None
    sgemm, integer = found
    order, real, place = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
    sgemm.restype = None
    sgemm.argtypes = [order] * 3 + [integer] * 3 + [real, place, integer, place, integer, real, place, integer]

    def multiply_add(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        """c += a · b for float32 matrices; the rows of c are contiguous."""
        a, flip_a, lead_a = _operand(a)
        b, flip_b, lead_b = _operand(b)
        (m, n), k = c.shape, a.shape[1]
        places = (x.__array_interface__["data"][0] for x in (a, b, c))
        at_a, at_b, at_c = places
        lead_c = c.strides[0] // c.itemsize
        sgemm(_ROW_MAJOR, flip_a, flip_b, m, n, k, 1.0, at_a, lead_a, at_b, lead_b, 1.0, at_c, lead_c)

    return multiply_add if _works(multiply_add) else None


def _works(multiply_add: MultiplyAdd) -> bool:
    """Small products of whole numbers in every orientation, on parts of larger arrays."""
    base = np.arange(90, dtype=np.float32).reshape(9, 10)
    for a in (base[:3, 1:5], base[1:5, :3].T):
        for b in (base[2:6, 2:7], base[3:8, 4:8].T):
            c = np.ones((4, 9), np.float32)
            multiply_add(c[:3, 2:7], a, b)
            want = np.ones((4, 9), np.float32)
            want[:3, 2:7] += a @ b
            if not np.array_equal(c, want):
                return False
    return True


multiply_add = _load()
