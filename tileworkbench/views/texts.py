"""Device text of a kernel: CUDA C++, PTX and machine code, with the user's lines beside it."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Loc, TileError
from ..jitkernel.kernel import JITKernel
from .blocks import Block, Code, Text
from .document import Section

LANGUAGES = {"cuda": "cuda", "hip": "hip"}


def source_section(kernel: JITKernel) -> Section:
    """The generated text with the user's lines."""
    if kernel.variant is None:
        return Section("cuda", "CUDA", (Text("The CPU target generates no device text."),))
    dialect = kernel.variant.source.dialect
    title = "CUDA" if dialect == "cuda" else dialect.upper()
    sources = [part.variant.source for part in kernel.parts if part.variant is not None]
    blocks = [Code(LANGUAGES.get(dialect, "c"), s.text, origins=lines_of(s.line_map, kernel)) for s in sources]
    return Section("cuda", title, tuple(blocks))


def ptx_section(kernel: JITKernel) -> Section:
    """PTX, or what hides it."""
    try:
        block: Block = Code("ptx", kernel.ptx)
    except TileError as error:
        block = missing(error)
    return Section("ptx", "PTX", (block,))


def sass_section(kernel: JITKernel) -> Section:
    """Machine code, or what hides it."""
    try:
        lines = kernel.sass_lines
    except TileError as error:
        return Section("sass", "SASS", (missing(error),))
    text = "\n".join(f"{line.address:04x}  {line.text}" for line in lines)
    return Section("sass", "SASS", (Code("sass", text, origins=lines_of([line.loc for line in lines], kernel)),))


def lines_of(places: Sequence[Loc | None], kernel: JITKernel) -> tuple[int, ...]:
    """The line in the kernel's own file or cell that each line came from; 0 for none."""
    file = kernel.tile.loc.file if kernel.tile.loc is not None else ""
    return tuple(place.line if place is not None and place.file == file else 0 for place in places)


def missing(error: TileError) -> Text:
    """What a tool that is not there hides, and how to get it."""
    return Text(f"{error.found}" + (f"; fix: {error.fix}" if error.fix else ""), "warn")
