"""CUDA text to a cubin through NVRTC: no GPU, no driver and no toolkit needed, only NVIDIA's wheels."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import site
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..codegen.source import Source
from ..errors import MissingDependency, TargetError
from ..options import options
from . import cudaheaders, diagnose, ptxas
from .binary import Binary
from .buildoptions import BuildOptions
from .elf import cubin_usage
from .pch import pch_dir
from .watch import Watch

# The one name the compiler is told: no user text can enter it, and an absolute one keeps the working directory out.
FILE = "/kernel.cu"
_SCRUBBED = re.compile(r"(NVCC|NVRTC)_|CPATH$|CPLUS_INCLUDE_PATH$|C_INCLUDE_PATH$")
_environment_lock = threading.Lock()


def build(source: Source, key: str = "") -> Binary:
    """Compiles to a cubin for `source.arch`; BuildError with the user's place when the text is refused."""
    chosen = BuildOptions.parse(source.options)
    headers = _headers(source)
    api = library()
    check_arch(source.arch)
    flags = [*_flags(source.arch, chosen), *_pch_flags(source, headers)]
    start = time.perf_counter()
    code, ptx, log = _compile(api, source, headers, flags)
    seconds = time.perf_counter() - start
    return _binary(source, code, ptx, log, key, seconds)


def ptx(source: Source) -> str:
    """PTX alone, of the same text and options; works where ptxas refuses it."""
    chosen = BuildOptions.parse(source.options)
    headers = _headers(source)
    flags = _flags(source.arch.replace("sm_", "compute_"), chosen)
    return _compile(library(), source, headers, flags)[1]


@functools.cache
def library() -> Any:
    """cuda-bindings' nvrtc with libnvrtc found in the wheel or toolkit; MissingDependency says which part is absent."""
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        raise MissingDependency(
            "cuda-bindings is not installed",
            rule="NVRTC is called through it",
            fix="pip install cuda-bindings nvidia-cuda-nvrtc",
        ) from None
    try:
        nvrtc.nvrtcVersion()
    except Exception as error:  # the loader's own error types differ between releases
        raise MissingDependency(
            f"libnvrtc cannot be loaded: {error}".splitlines()[0],
            rule="CUDA text is compiled by NVRTC",
            fix="pip install nvidia-cuda-nvrtc",
        ) from error
    return nvrtc


def version() -> str:
    """Name and version of the compiler, for keys and reports. A wheel's version is read without loading the library;
    once it is loaded, its own word counts when another one than the wheel's was found."""
    major, minor = _release() if _loaded() else (0, 0)
    wheel = _wheel_version()
    if wheel and (not major or wheel.startswith(f"{major}.{minor}.")):
        return f"nvrtc {wheel}"
    major, minor = _release()
    return f"nvrtc {major}.{minor}"


def _loaded() -> bool:
    return library.cache_info().currsize > 0


@functools.cache
def _wheel_version() -> str:
    # By the name of the wheel's record: importlib.metadata takes 20 ms to import, most of a build found on disk.
    # Site folders first, as cuda-bindings itself looks.
    for folder in (*site.getsitepackages(), *sys.path):
        names = [path.name for path in Path(folder or ".").glob("nvidia_cuda_nvrtc*.dist-info")]
        versions = [name.removesuffix(".dist-info").rpartition("-")[2] for name in names]
        if versions:
            return max(versions, key=lambda v: [int(n) for n in re.findall(r"\d+", v)])
    return ""


@functools.cache
def _release() -> tuple[int, int]:
    _, major, minor = library().nvrtcVersion()
    return major, minor


@functools.cache
def supported_archs() -> tuple[int, ...]:
    """Compute capabilities this NVRTC builds for, as 90 for sm_90."""
    return tuple(library().nvrtcGetSupportedArchs()[1])


def check_arch(arch: str) -> None:
    """Raises TargetError when this NVRTC cannot build for `arch`."""
    match = re.fullmatch(r"sm_(\d+)[af]?", arch)
    if match is None:
        raise TargetError(f"{arch!r} is not an NVIDIA architecture", rule="sm_ and a number, e.g. sm_90a")
    if int(match[1]) not in supported_archs():
        known = ", ".join(f"sm_{n}" for n in supported_archs())
        raise TargetError(
            f"{version()} cannot build for {arch}",
            rule=f"it builds for {known}",
            fix="pip install -U nvidia-cuda-nvrtc" if int(match[1]) > max(supported_archs()) else "",
        )


def _headers(source: Source) -> tuple[tuple[str, str], ...]:
    toolkit = cudaheaders.wanted(source)
    known = (*toolkit, *(name for name, _ in source.headers))
    own = ((cudaheaders.rooted(name), cudaheaders.root_includes(text, known)) for name, text in source.headers)
    return (*own, *cudaheaders.closure(toolkit))


def _flags(arch: str, options: BuildOptions) -> list[str]:
    flags = [
        f"--gpu-architecture={arch}",
        f"--std=c++{options.std}",
        "--ptxas-options=-v",
        "--ptxas-options=--warn-on-spills",
    ]
    flags += ["--minimal", "--no-source-include"] if _release() >= (12, 8) else []
    # What NVRTC finds in the driver's cache comes without ptxas' report; this package keeps what it built itself.
    flags += ["--no-cache"] if _release() >= (12, 9) else []
    flags += ["--use_fast_math"] if options.fast_math else []
    flags += ["--generate-line-info"] if options.line_info and not options.debug else []
    flags += ["--device-debug"] if options.debug else []
    flags += [f"--maxrregcount={options.max_registers}"] if options.max_registers else []
    return flags


def _pch_flags(source: Source, headers: tuple[tuple[str, str], ...]) -> list[str]:
    # Measured for sm_90a on two cores: a text without includes 28-32 ms either way; with the half, bfloat16 and fp8
    # headers 75-90 ms without a precompiled header, 95-110 ms for the first with one and 32 ms for each after it.
    # NVRTC does not notice that an in-memory header changed, hence one folder per digest of the headers.
    if _release() < (12, 8) or not cudaheaders.included(source.text) or not headers:
        return []
    folder = pch_dir(cudaheaders.digest(headers))
    return ["--pch", f"--pch-dir={folder}", "--diag-suppress=629"] if folder else []


def _compile(
    api: Any, source: Source, headers: tuple[tuple[str, str], ...], flags: list[str]
) -> tuple[bytes, str, str]:
    names, texts = [n.encode() for n, _ in headers], [t.encode() for _, t in headers]
    known = {name.lstrip("/") for name, _ in headers}
    text = cudaheaders.root_includes(source.text, known)
    status, program = api.nvrtcCreateProgram(text.encode(), FILE.encode(), len(names), texts, names)
    _check(api, status)
    watch = Watch(options.compile_timeout)
    try:
        watch.attach(api, program)
        with scrubbed_environment(), watch.listening():
            (status,) = api.nvrtcCompileProgram(program, len(flags), [f.encode() for f in flags])
        log = _text(api, program, "ProgramLog")
        watch.raise_if_stopped(source.entry)
        if int(status) != 0:
            raise _refused(source, log, status.name)
        cubin = b"" if any("=compute_" in f for f in flags) else _bytes(api, program, "CUBIN")
        return cubin, _text(api, program, "PTX"), log
    finally:
        api.nvrtcDestroyProgram(program)


def _refused(source: Source, log: str, status: str) -> Exception:
    found = diagnose.front_end(log, FILE)
    if not found and "ptxas" in log:
        found = diagnose.assembler(log, ptx(source))
    return diagnose.build_error(source, found, ptxas.without_noise(log), status)


def _binary(source: Source, code: bytes, ptx_text: str, log: str, key: str, seconds: float) -> Binary:
    told = ptxas.usage(log, source.entry)
    if told.registers is None:
        told = cubin_usage(code, source.entry)
    return Binary(
        code=code,
        kind="cubin",
        arch=source.arch,
        entry=source.entry,
        log=ptxas.without_noise(log),
        warnings=ptxas.warnings(log),
        registers=told.registers,
        spills=told.spills,
        stack=told.stack,
        shared=told.shared,
        barriers=told.barriers,
        ptx=ptx_text,
        key=key,
        seconds=seconds,
        compiler=version(),
    )


def _bytes(api: Any, program: object, what: str) -> bytes:
    status, size = getattr(api, f"nvrtcGet{what}Size")(program)
    _check(api, status)
    buffer = bytearray(size)
    (status,) = getattr(api, f"nvrtcGet{what}")(program, buffer)
    _check(api, status)
    return bytes(buffer)


def _text(api: Any, program: object, what: str) -> str:
    return _bytes(api, program, what).rstrip(b"\0 \n").decode(errors="replace")


def _check(api: Any, status: object) -> None:
    if int(status) != 0:  # type: ignore[call-overload]
        _, text = api.nvrtcGetErrorString(status)
        raise MissingDependency(f"NVRTC failed: {text.decode()}", rule="NVRTC answers", fix="tileworkbench doctor")


@contextlib.contextmanager
def scrubbed_environment() -> Iterator[None]:
    """Hides variables that could add compiler options or include paths. Taken only when there are any, so builds in
    several threads run beside one another."""
    if not any(_SCRUBBED.match(name) for name in os.environ):
        yield
        return
    with _environment_lock:
        saved = {name: os.environ.pop(name) for name in list(os.environ) if _SCRUBBED.match(name)}
        try:
            yield
        finally:
            os.environ.update(saved)
