"""T.im2col: a tile of the matrix whose product with a flattened kernel is a convolution."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.expr import Expr, Load, Var, as_expr, cast, compare, const, logical, select
from ..ir.stmt import Store
from ..ops.parallel import Parallel
from .builder import require
from .faults import fault, shown
from .regions import to_region


def im2col(
    img: Any,
    col: Any,
    nhw_step: Any,
    c_step: Any,
    kernel: int,
    stride: int,
    dilation: int,
    pad: int,
    eviction_policy: str | None = None,
    annotations: Any = None,
) -> None:
    """Fills the tile `col` (rows, taps) from the image `img` (N, H, W, C): row `nhw_step * rows + i` is an output
    pixel, column `c_step * taps + j` a pair of kernel tap and channel. Places in the padding, and beyond the last pixel
    or tap, are 0."""
    builder = require("T.im2col")
    image, tile = to_region(img, "T.im2col: the image"), to_region(col, "T.im2col: the tile")
    if image.buffer.rank != 4 or tile.buffer.rank != 2:
        raise ShapeError(
            f"T.im2col of `{image.buffer.name}` with {image.buffer.rank} dimensions into `{tile.buffer.name}` with "
            f"{tile.buffer.rank}",
            rule="an image is (N, H, W, C), the tile has rows and columns",
            fix="view the image with four dimensions",
        )
    for word, value in (("kernel", kernel), ("stride", stride), ("dilation", dilation), ("pad", pad)):
        if isinstance(value, Expr) or not hasattr(value, "__index__"):
            raise fault(f"T.im2col: {word}={shown(value)}", "it is an int", "use a Python value")
    loc = builder.here
    i, j = (Var(builder.unique(name), loc=loc) for name in ("i", "j"))
    inside, place = _pixel(
        image.buffer.shape, tile.buffer.shape, (nhw_step, c_step), (i, j), kernel, stride, dilation, pad
    )
    pixel = cast(Load(image.buffer, place, loc=loc), tile.buffer.dtype)
    store = Store(tile.buffer, (i, j), select(inside, pixel, const(0, tile.buffer.dtype)), loc=loc)
    builder.emit(Parallel((i, j), tuple(tile.buffer.shape), (store,), (), loc=loc))


c2d_im2col = im2col


def _pixel(
    shape: Any, tile: Any, steps: Any, at: Any, kernel: int, stride: int, dilation: int, pad: int
) -> tuple[Expr, tuple[Expr, ...]]:
    """Whether the tile's element has a pixel, and its place in the image."""
    images, height, width, channels = shape
    rows, taps = tile
    high = (height + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    wide = (width + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    m = as_expr(steps[0]) * rows + at[0]
    if isinstance(channels, int) and channels % taps == 0:  # one tap a tile: channels stay neighbours
        first = as_expr(steps[1]) * taps
        tap, c = first // channels, first % channels + at[1]
    else:
        k = as_expr(steps[1]) * taps + at[1]
        tap, c = k // channels, k % channels
    n, p = m // (high * wide), m % (high * wide)
    h = p // wide * stride + tap // kernel * dilation - pad
    w = p % wide * stride + tap % kernel * dilation - pad
    inside: Expr = compare("lt", tap, kernel * kernel)
    for x, limit in ((n, images), (h, height), (w, width)):
        inside = logical("land", inside, logical("land", compare("ge", x, 0), compare("lt", x, limit)))
    return inside, (n, h, w, c)
