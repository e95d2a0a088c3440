"""The PNG encoder against a decoder written from the format's description."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from tileworkbench.errors import InternalError
from tileworkbench.views.picture import indexed_png

COLOURS = [(255, 255, 255), (0, 0, 0), (0, 114, 178)]


def decoded(png: bytes) -> np.ndarray:
    """RGB [height, width, 3] of an indexed, unfiltered PNG; checks every chunk's CRC."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        data = png[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + data) == struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0]
        chunks[kind] = data
        at += 12 + length
    width, height, depth, kind, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, kind, rest) == (8, 3, [0, 0, 0])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)[rows[:, 1:]]


@pytest.mark.parametrize("height, width, scale", [(1, 1, 1), (5, 7, 1), (5, 7, 3), (8, 64, 4)])
def test_every_dot_has_its_colour(height: int, width: int, scale: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 3, (height, width))
    image = decoded(indexed_png(pixels, COLOURS, scale))
    for y in range(height * scale):
        for x in range(width * scale):
            assert tuple(image[y, x]) == COLOURS[pixels[y // scale, x // scale]]


def test_a_large_grid_of_few_colours_stays_small() -> None:
    i, j = np.indices((256, 128))
    assert len(indexed_png((i // 8 ^ j // 8) % 3, COLOURS, 4)) < 20_000


@pytest.mark.parametrize(
    "pixels, palette, scale",
    [(np.zeros((0, 3), int), COLOURS, 1), (np.full((2, 2), 3), COLOURS, 1), (np.zeros((2, 2), int), [], 1)]
    + [
        (np.zeros((2, 2), int), COLOURS, 0),
        (np.zeros((4096, 4096), int), COLOURS, 2),
        (np.full((2, 2), -1), COLOURS, 1),
    ],
)
def test_what_cannot_be_drawn_is_refused(pixels, palette, scale) -> None:
    with pytest.raises(InternalError):
        indexed_png(pixels, palette, scale)
