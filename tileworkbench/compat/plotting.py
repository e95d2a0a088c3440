"""plot_layout: which thread and register, or which place in memory, holds each element of a tile, as a picture."""

from __future__ import annotations

import colorsys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError, OptionError
from ..layout import Distribution, SharedLayout
from ..views.picture import indexed_png

CELL = 36  # dots of a cell's side
FORMATS = ("svg", "png")
MOST_CELLS = 1 << 14
MOST_COLOURS = 64


def plot_layout(
    layout: Any,
    save_directory: str | Path = "./tmp",
    name: str = "layout",
    colormap: str | None = None,
    verbose: bool = False,
    formats: str | Sequence[str] = "svg",
    view: str = "input",
    grid_shape: tuple[int, int] | None = None,
) -> list[Path]:
    """Draws a layout as a grid and gives the files. A fragment's cells say thread and register and are coloured by
    thread; a shared layout's cells say the offset (view "input") or the element that lies there (view "output"). PDF is
    written as SVG, with a warning; `colormap` is accepted and has no effect."""
    if view not in ("input", "output"):
        raise OptionError(f"view={view!r}", rule="input or output", fix='"input"')
    texts, colours = cells(layout, view, grid_shape)
    if texts.size > MOST_CELLS:
        raise OptionError(
            f"a picture of {texts.size} cells", rule=f"at most {MOST_CELLS}", fix="plot a part of the tile"
        )
    folder = Path(save_directory)
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for kind in wanted(formats):
        path = folder / f"{name}.{kind}"
        made.append(path)
        if kind == "svg":
            path.write_text(svg(texts, colours), encoding="utf-8")
        else:
            path.write_bytes(indexed_png(colours % MOST_COLOURS, palette(), scale=max(1, CELL // 4)))
    return made


def plot_fragment_tv(
    layout: Any, save_directory: str | Path = "./tmp", name: str = "fragment", **named: Any
) -> list[Path]:
    """A fragment by thread (rows) and register (columns): each cell says the element that is held there."""
    if not isinstance(layout, Distribution):
        raise LayoutError(f"plot_fragment_tv of {type(layout).__name__}", rule="it draws fragments")
    folder = Path(save_directory)
    folder.mkdir(parents=True, exist_ok=True)
    table, valid = layout.table(), layout.valid()
    texts = np.empty(valid.shape, object)
    for at in np.ndindex(*valid.shape):
        texts[at] = ",".join(map(str, table[at])) if valid[at] else ""
    path = folder / f"{name}.svg"
    path.write_text(svg(texts, np.broadcast_to(np.arange(valid.shape[1]), valid.shape)), encoding="utf-8")
    return [path]


def wanted(formats: str | Sequence[str]) -> list[str]:
    """The files to write."""
    asked = formats.replace(",", " ").split() if isinstance(formats, str) else list(formats)
    asked = [*FORMATS] if "all" in asked else asked
    if "pdf" in asked:
        warnings.warn("plot_layout writes SVG in place of PDF", stacklevel=3)
        asked = ["svg" if kind == "pdf" else kind for kind in asked]
    unknown = [kind for kind in asked if kind not in FORMATS]
    if unknown:
        raise OptionError(f"format {unknown[0]!r}", rule=f"one of {', '.join(FORMATS)}, pdf, all", fix='"svg"')
    return list(dict.fromkeys(asked))


def cells(layout: Any, view: str, grid: tuple[int, int] | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(texts, colour numbers) of the grid's cells."""
    if isinstance(layout, Distribution):
        coords = np.indices(layout.shape)
        threads, registers = (np.broadcast_to(x, layout.shape) for x in layout.owner(*coords))
        texts = np.array([f"T{t}\nL{r}" for t, r in zip(threads.flat, registers.flat, strict=True)], object)
        return _folded(texts, layout.shape, grid), _folded(np.asarray(threads), layout.shape, grid)
    if not isinstance(layout, SharedLayout):
        raise LayoutError(f"plot_layout of {type(layout).__name__}", rule="it draws layouts and fragments")
    if view == "input":
        offsets = layout.table()
        texts = np.array([str(o) for o in offsets.flat], object)
        return _folded(texts, layout.shape, grid), _folded(offsets, layout.shape, grid)
    back = layout.inverse_table()
    texts = np.array([",".join(map(str, c)) if c[0] >= 0 else "" for c in back], object)
    width = layout.shape[-1]
    shape = (-(-layout.size // width), width)
    padded = np.full(shape[0] * width, "", object)
    padded[: layout.size] = texts
    rows = np.zeros(shape[0] * width, np.int64)
    rows[: layout.size] = back[:, 0]
    return padded.reshape(shape), rows.reshape(shape)


def _folded(values: npt.NDArray[Any], shape: Sequence[int], grid: tuple[int, int] | None) -> npt.NDArray[Any]:
    """Two dimensions: the last one in rows, all others stacked; or the grid that was asked for."""
    rows, columns = grid or (int(np.prod(shape[:-1], dtype=np.int64)), int(shape[-1]))
    if rows * columns != values.size:
        raise OptionError(f"grid_shape={grid} for {values.size} elements", rule="the grid holds every element once")
    return values.reshape(rows, columns)


def palette() -> list[tuple[int, int, int]]:
    """Pale colours, neighbours far apart."""
    return [
        tuple(round(255 * c) for c in colorsys.hls_to_rgb(n * 0.618034 % 1, 0.8, 0.6))  # type: ignore[misc]
        for n in range(MOST_COLOURS)
    ]


def svg(texts: npt.NDArray[Any], colours: npt.NDArray[Any]) -> str:
    """The grid as SVG; texts may have two lines."""
    fills = palette()
    rows, columns = texts.shape
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {columns * CELL} {rows * CELL}">',
        '<g font-family="monospace" font-size="9" text-anchor="middle">',
    ]
    for (row, column), text in np.ndenumerate(texts):
        red, green, blue = fills[int(colours[row, column]) % MOST_COLOURS]
        x, y = column * CELL, row * CELL
        box = f'x="{x}" y="{y}" width="{CELL}" height="{CELL}"'
        parts.append(f'<rect {box} fill="rgb({red},{green},{blue})" stroke="#888" stroke-width="0.5"/>')
        lines = str(text).split("\n")
        for at, line in enumerate(lines):
            parts.append(f'<text x="{x + CELL / 2}" y="{y + CELL / 2 + 10 * at - 5 * len(lines) + 8}">{line}</text>')
    return "\n".join([*parts, "</g></svg>\n"])
