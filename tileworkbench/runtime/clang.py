"""HIP text to gfx assembly through clang, where there is no ROCm: proof that the text compiles, and what it became."""

from __future__ import annotations

import functools
import re
import shutil
import time
from pathlib import Path

from ..codegen.source import Source
from ..errors import BuildError, MissingDependency, TargetError
from . import cudaheaders, diagnose, tools
from .binary import Binary
from .buildoptions import BuildOptions

FILE = "kernel.hip"
NEWEST, OLDEST = 26, 19  # clang-19 refuses gfx950 and crashes on direct-to-LDS pipelines, so newer ones are tried first
_FIGURE = re.compile(
    r"^\s+\.(vgpr_count|agpr_count|vgpr_spill_count|sgpr_spill_count|private_segment_fixed_size|"
    r"group_segment_fixed_size):\s+(\d+)",
    re.MULTILINE,
)


def build(source: Source, key: str = "") -> Binary:
    """Compiles HIP text for `source.arch` to assembly; `registers` counts vector registers a lane. BuildError with the
    user's place when the text is refused, MissingDependency without a clang that knows the architecture."""
    options = BuildOptions.parse(source.options)
    if not re.fullmatch(r"gfx[0-9a-f]{3,4}", source.arch):
        raise TargetError(f"{source.arch!r} is not an AMD architecture", rule="gfx and a number, e.g. gfx942")
    if toolkit := cudaheaders.wanted(source):
        raise BuildError(f"HIP text of {source.entry!r} includes {toolkit[0]}", rule="HIP text uses no CUDA header")
    tool = clang(source.arch)
    start = time.perf_counter()
    text, log = _compile(tool, source, options)
    figures = {name: int(number) for name, number in _FIGURE.findall(text)}
    return Binary(
        code=text.encode(),
        kind="asm",
        arch=source.arch,
        entry=source.entry,
        log=log,
        warnings=tuple(line for line in log.splitlines() if "warning:" in line),
        registers=figures.get("vgpr_count"),
        spills=_sum(figures, "vgpr_spill_count", "sgpr_spill_count"),
        stack=figures.get("private_segment_fixed_size"),
        shared=figures.get("group_segment_fixed_size"),
        key=key,
        seconds=time.perf_counter() - start,
        compiler=version(tool),
    )


@functools.cache
def clang(arch: str) -> Path:
    """The newest clang on the machine that compiles for `arch`."""
    names = [f"clang-{n}" for n in range(NEWEST, OLDEST - 1, -1)] + ["clang", "/opt/rocm/llvm/bin/clang"]
    for found in filter(None, map(shutil.which, names)):
        if _knows(Path(found).absolute(), arch):
            return Path(found).absolute()
    raise MissingDependency(
        f"no clang that compiles for {arch} was found",
        rule="HIP text is checked by clang",
        fix="apt-get install clang-22",
    )


@functools.cache
def version(tool: Path) -> str:
    """The first line of what a tool says about itself, for keys and reports."""
    with tools.folder() as folder:
        lines = tools.call(tool, ["--version"], folder).out.splitlines()
    return lines[0] if lines else tool.name


def _knows(tool: Path, arch: str) -> bool:
    with tools.folder() as folder:
        (folder / FILE).write_text("\n")
        return tools.call(tool, _arguments(arch, BuildOptions()), folder).status == 0


def _arguments(arch: str, options: BuildOptions) -> list[str]:
    flags = [
        "-x",
        "hip",
        f"--offload-arch={arch}",
        "--offload-device-only",
        "-nogpuinc",
        "-nogpulib",
        "-nostdinc",
        "-I.",
        f"-std=c++{options.std}",
        "-O0" if options.debug else "-O3",
        "-fno-color-diagnostics",
        "-ffp-contract=fast",
        "-fuse-cuid=none",
    ]
    flags += ["-ffast-math"] if options.fast_math else []
    flags += ["-gline-tables-only", "-fdebug-compilation-dir=/"] if options.line_info else []
    return [*flags, "-S", FILE, "-o", "kernel.s"]


def _compile(tool: Path, source: Source, options: BuildOptions) -> tuple[str, str]:
    with tools.folder() as folder:
        (folder / FILE).write_text(source.text, encoding="utf-8")
        for name, text in source.headers:
            _write_header(folder, name, text)
        answer = tools.call(tool, _arguments(source.arch, options), folder)
        if answer.status != 0:
            found = diagnose.front_end(answer.err, FILE)
            raise diagnose.build_error(source, found, answer.err, f"clang ended with status {answer.status}")
        return (folder / "kernel.s").read_text(encoding="utf-8"), answer.err.strip()


def _write_header(folder: Path, name: str, text: str) -> None:
    if not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)*", name):
        raise BuildError(f"a header is named {name!r}", rule="a header's name is a relative path of plain words")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _sum(figures: dict[str, int], *names: str) -> int | None:
    known = [figures[name] for name in names if name in figures]
    return sum(known) if known else None
