"""An encoder for indexed PNG pictures: for grids of few colours it is far smaller than anything drawn as markup."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import InternalError

MOST_PIXELS = 1 << 24


def indexed_png(pixels: npt.NDArray[np.integer], palette: Sequence[tuple[int, int, int]], scale: int = 1) -> bytes:
    """PNG of `pixels` [height, width], each an index into `palette` (1–256 colours of 8-bit RGB), each drawn as
    `scale` × `scale` dots."""
    if pixels.ndim != 2 or not pixels.size or not 1 <= len(palette) <= 256 or scale < 1:
        raise InternalError(f"cannot draw {pixels.shape} pixels with {len(palette)} colours at scale {scale}")
    if pixels.size * scale * scale > MOST_PIXELS:
        raise InternalError(f"a picture of {pixels.size * scale * scale} dots is over the limit of {MOST_PIXELS}")
    if pixels.min() < 0 or pixels.max() >= len(palette):
        raise InternalError(f"a pixel's index is outside the {len(palette)} colours")
    grid = pixels.astype(np.uint8).repeat(scale, 0).repeat(scale, 1)
    height, width = grid.shape
    # Every row starts with its filter type; 0 is none, which suits flat colours best.
    rows = np.zeros((height, width + 1), np.uint8)
    rows[:, 1:] = grid
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    colours = bytes(channel for colour in palette for channel in colour)
    body = zlib.compress(rows.tobytes(), 9)
    parts = chunk(b"IHDR", header), chunk(b"PLTE", colours), chunk(b"IDAT", body), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
