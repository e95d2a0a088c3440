"""A cubin as SASS text, each instruction with the generated line and the user's place that it came from."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..codegen.source import Source
from ..errors import BuildError, Loc, MissingDependency
from . import diagnose, tools
from .binary import Binary
from .nvrtc import FILE

_SECTION = re.compile(r"^\.text\.(\S+):")
_LINE = re.compile(r'//## File "([^"]*)", line (\d+)')
_INLINED = re.compile(r'inlined at "([^"]*)", line (\d+)')
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.+?)\s*;?\s*$")
_LABEL = re.compile(r"^(\.L_[\w.]+):")
_LIVE = re.compile(r"//\s*\|([^|]*)\|")


@dataclass(frozen=True)
class SassLine:
    """One instruction. `address` counts in bytes from the kernel's start; `generated_line` counts from 1 (0: unknown);
    `live` is the number of live general registers where it was asked for; `label` names a branch target."""

    address: int
    text: str
    generated_line: int = 0
    loc: Loc | None = None
    label: str = ""
    live: int | None = None

    @property
    def opcode(self) -> str:
        """The instruction's name with its modifiers."""
        words = self.text.split()
        return words[1] if words[0].startswith("@") and len(words) > 1 else words[0]


def sass(binary: Binary, source: Source | None = None, live: bool = False) -> list[SassLine]:
    """Disassembles the entry of a cubin; `source` brings the users' places, `live` a register count per line (twice
    the time). MissingDependency without nvdisasm, BuildError for code that is no cubin."""
    if binary.kind != "cubin":
        raise BuildError(f"a {binary.kind} has no SASS", rule="SASS is what a cubin holds")
    lines = list(_read(_run(binary, ["-c", "-gi"]), binary.entry))
    counts = _live_counts(_run(binary, ["-c", "-plr", "-lrm", "count"]), binary.entry) if live else {}
    return [
        SassLine(
            address, text, line, diagnose.place(source, line) if source and line else None, label, counts.get(address)
        )
        for address, text, line, label in lines
    ]


@functools.cache
def nvdisasm() -> Path:
    """The disassembler of the wheel or of an installed toolkit."""
    try:
        from cuda import pathfinder

        found = pathfinder.find_nvidia_binary_utility("nvdisasm")
    except (ImportError, AttributeError, RuntimeError):  # an older pathfinder has no look-up of tools
        found = None
    found = found or _in_wheel() or shutil.which("nvdisasm")
    if not found:
        raise MissingDependency(
            "nvdisasm is not installed",
            rule="SASS is read by NVIDIA's disassembler",
            fix="pip install nvidia-cuda-nvdisasm",
        )
    return Path(found).absolute()


def _in_wheel() -> str | None:
    import importlib.util

    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(root).glob("*/bin/nvdisasm*")):
            return str(path)
    return None


def _run(binary: Binary, flags: list[str]) -> str:
    with tools.folder() as folder:
        (folder / "kernel.cubin").write_bytes(binary.code)
        answer = tools.call(nvdisasm(), [*flags, "kernel.cubin"], folder)
    if answer.status != 0:
        raise BuildError(
            f"nvdisasm cannot read the code of {binary.entry!r}: {answer.err.strip()}",
            fix="pip install -U nvidia-cuda-nvdisasm",
        )
    return answer.out


def _read(listing: str, entry: str) -> Iterator[tuple[int, str, int, str]]:
    """(address, text, generated line, label). Of an inlined header function the line is that of its call."""
    line, label, marks = 0, "", []
    for row in _rows(listing, entry):
        if _LINE.search(row):
            marks.append(row)
        elif found := _LABEL.match(row):
            label = found[1]
        elif found := _INSTRUCTION.match(row):
            line = _generated_line(marks) or line
            yield int(found[1], 16), found[2], line, label
            label, marks = "", []


def _rows(listing: str, entry: str) -> Iterator[str]:
    inside = False
    for row in listing.splitlines():
        if section := _SECTION.match(row):
            inside = section[1] == entry
        elif row.startswith(("\t.section", "//-----")):
            inside = False
        elif inside:
            yield row


def _generated_line(marks: list[str]) -> int:
    """The line within the generated text that an instruction's marks name, innermost first; 0 when they name none."""
    places = [place for row in marks for place in (*_LINE.findall(row), *_INLINED.findall(row))]
    return next((int(number) for file, number in places if file == FILE), 0)


def _live_counts(listing: str, entry: str) -> dict[int, int]:
    counts = {}
    for row in _rows(listing, entry):
        code, _, notes = row.partition("//")
        found, live = _INSTRUCTION.match(code), _LIVE.search("//" + notes)
        if found and live and live[1].strip().isdigit():
            counts[int(found[1], 16)] = int(live[1])
    return counts
