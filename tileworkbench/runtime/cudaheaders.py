"""CUDA's own headers as in-memory text, so that a build opens no file by itself and its key covers what it read."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path

from ..codegen.source import Source
from ..errors import BuildError, MissingDependency
from .diagnose import place

PUBLIC = (
    "cuda_fp16.h",
    "cuda_bf16.h",
    "cuda_fp8.h",
    "cuda_fp6.h",
    "cuda_fp4.h",
    "math_constants.h",
    "cooperative_groups.h",
    "cuda_pipeline.h",
)
_DIRECTIVE = re.compile(
    r"(?:^|\*/)[ \t]*(?:#|%:|\?\?=)[ \t]*(?:include|include_next|import|embed)\b[^\n]*", re.MULTILINE
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def included(text: str) -> tuple[str, ...]:
    """Names that `text` includes, in order."""
    return tuple(_INCLUDE.findall(text))


def wanted(source: Source) -> tuple[str, ...]:
    """The public CUDA headers that a source asks for. Any other include that it does not bring itself is refused:
    NVRTC would open an absolute path, and its messages echo what they read."""
    own = {name for name, _ in source.headers}
    asked: set[str] = set()
    for text in (source.text, *(text for _, text in source.headers)):
        for directive in _DIRECTIVE.finditer(text.replace("\\\n", "")):
            name = next(iter(included(directive[0].lstrip("*/"))), None)
            if name not in own and name not in PUBLIC:
                raise _refused(source, text, directive)
            asked.add(name)
    return tuple(sorted(asked & set(PUBLIC)))


def _refused(source: Source, text: str, directive: re.Match[str]) -> BuildError:
    line = text.count("\n", 0, directive.start()) + 1
    return BuildError(
        f"kernel {source.entry!r} has the directive {directive[0].strip()!r}",
        rule="generated text may include its own headers and " + ", ".join(PUBLIC),
        loc=place(source, line) if text is source.text else None,
    )


@functools.cache
def closure(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """(name, text) of the public CUDA headers in `names` and of every header they include, under absolute names.
    Host-only includes that the toolkit does not hold are left out: a device build never reaches them."""
    found: dict[str, str] = {}
    todo = [name for name in names if name in PUBLIC]
    while todo:
        name = todo.pop()
        path = _path(name)
        if name in found or path is None:
            continue
        found[name] = path.read_text(encoding="utf-8", errors="replace")
        todo += [n for i in included(found[name]) for n in (i, _beside(name, i))]
    return tuple(sorted((rooted(name), _absolute(name, text, found.keys())) for name, text in found.items()))


def rooted(name: str) -> str:
    """The absolute name that a header is compiled under. A relative one would bring the working directory into the
    line table, so that equal kernels would differ from folder to folder and show their user's paths."""
    return "/" + name


def root_includes(text: str, names: Iterable[str]) -> str:
    """`text` with each include of one of `names` spelled by its absolute name; no line moves."""
    return _absolute("", text, names)


def _absolute(name: str, text: str, known: Iterable[str]) -> str:
    known = frozenset(known)

    def spell(match: re.Match[str]) -> str:
        target = next((n for n in (match[1], _beside(name, match[1])) if n in known), None)
        whole, start = match[0], match.start(1) - match.start(0)
        return whole if target is None else whole[:start] + rooted(target) + whole[start + len(match[1]) :]

    return _INCLUDE.sub(spell, text)


def _beside(name: str, include: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), include))


def _path(name: str) -> Path | None:
    root = include_dir()
    return next((p for p in (root / name, root / "cccl" / name) if p.is_file()), None)


@functools.cache
def include_dir() -> Path:
    """The toolkit's include folder, from the nvidia-cuda-runtime wheel or an installed toolkit."""
    found = _in_wheel() or _in_toolkit()
    if found is None:
        raise MissingDependency(
            "the CUDA headers are not installed",
            rule="this kernel includes CUDA's headers for half, bfloat16 or fp8 numbers",
            fix="pip install nvidia-cuda-runtime",
        )
    return found


def _in_wheel() -> Path | None:
    """The newest wheel's folder. Asked first, since the toolkit's finder takes 50 ms to import."""
    spec = importlib.util.find_spec("nvidia")
    roots = (spec.submodule_search_locations or ()) if spec else ()
    found = [path.parent for root in roots for path in Path(root).glob("*/include/cuda_fp16.h")]
    return max(found, default=None)


def _in_toolkit() -> Path | None:
    try:
        from cuda import pathfinder
    except ImportError:
        return None
    found = pathfinder.find_nvidia_header_directory("cudart")
    return Path(found) if found else None


@functools.cache
def fingerprint(names: tuple[str, ...]) -> str:
    """What tells one toolkit's headers from another's without reading them: sizes and times of the files."""
    paths = [path for name in names for n in (name, name + "pp") if (path := _path(n)) is not None]
    return " ".join(f"{path.name}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in paths)


@functools.cache
def digest(headers: tuple[tuple[str, str], ...]) -> str:
    """sha256 over names and texts, hexadecimal."""
    sha = hashlib.sha256()
    for name, text in headers:
        sha.update(f"{len(name)}:{name}{len(text)}:{text}".encode())
    return sha.hexdigest()
