"""What this machine has for tileworkbench, and the exact fix for what it lacks.

Tools of the compiler are found by the rooms that use them, so that what is reported is what a build would use."""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from . import browser, lab_extension
from .errors import TileError
from .runtime import clang, cudaheaders, disassemble, nvrtc
from .target.detect import survey

NO_MACOS = "NVIDIA publishes no macOS packages: PTX, SASS and register counts need Linux or Windows; all else works"
SIGNS = {"ok": "ok", "missing": "--", "warning": "!!"}
HIP_ARCH = "gfx950"  # the newest row: a clang that knows it knows the others


@dataclass(frozen=True)
class Finding:
    """One thing looked for. `state` is "ok", "missing" or "warning"; `use` is what needs it, `fix` what brings it."""

    name: str
    state: str
    found: str
    use: str
    fix: str = ""


def examine() -> tuple[Finding, ...]:
    """Every finding, in the order in which a user needs them. Reads the machine; changes nothing."""
    return (
        base(),
        gpu(),
        tool("NVRTC", compiler, "CUDA, PTX and register counts", "nvrtc"),
        tool(
            "CUDA headers",
            lambda: str(cudaheaders.include_dir()),
            "kernels with half, bfloat16 or fp8 numbers",
            "nvrtc",
        ),
        tool("nvdisasm", lambda: str(disassemble.nvdisasm()), "SASS", "nvrtc"),
        package("CuPy", "kernels on CuPy arrays", "cuda", "cupy-cuda13x", "cupy-cuda12x", "cupy"),
        package("torch", "kernels on torch tensors", "torch", "torch"),
        package("IPython", "%%tilekernel", "", "ipython"),
        jupyter(),
        extension(),
        package("ipywidgets", "result.widget()", "lab", "ipywidgets"),
        chromium(),
        hip_compiler(),
    )


def text(findings: tuple[Finding, ...]) -> str:
    """One line a finding, and its use and fix below it where something is to be done."""
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"[{SIGNS[finding.state]}] {finding.name:<{width}}  {finding.found}")
        if finding.state != "ok":
            lines.append(f"{'':<{width + 7}}for {finding.use}" + (f"; fix: {finding.fix}" if finding.fix else ""))
    return "\n".join(lines)


def install(extra: str) -> str:
    """The command that brings an extra into this very environment, from where the package itself came."""
    return f"{sys.executable} -m pip install '{origin()}[{extra}]'"


def origin() -> str:
    """What to hand to pip: the checkout's folder if that was installed, else the name."""
    try:
        record = metadata.distribution("tileworkbench").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        record = None
    url = str(json.loads(record).get("url", "")) if record else ""
    folder = url2pathname(urlsplit(url).path) if url.startswith("file:") else ""
    return folder if folder and Path(folder).is_dir() else "tileworkbench"


def version_of(*distributions: str) -> str:
    """`name version` of the first distribution that is installed, or nothing."""
    for name in distributions:
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return ""


def package(name: str, use: str, extra: str, *distributions: str) -> Finding:
    """A Python package, by its record: nothing is imported."""
    found = version_of(*distributions)
    if found:
        return Finding(name, "ok", found, use)
    if extra == "cuda" and platform.system() == "Darwin":
        return Finding(name, "missing", NO_MACOS, use)
    fix = install(extra) if extra else f"{sys.executable} -m pip install {distributions[0]}"
    return Finding(name, "missing", "not installed", use, fix)


def tool(name: str, find: Callable[[], str], use: str, extra: str) -> Finding:
    """A part of NVIDIA's toolkit, looked for by the room that calls it."""
    try:
        return Finding(name, "ok", find(), use)
    except TileError as problem:
        if platform.system() == "Darwin":
            return Finding(name, "missing", NO_MACOS, use)
        return Finding(name, "missing", problem.found, use, install(extra))


def base() -> Finding:
    """The interpreter and the two packages without which nothing runs."""
    found = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("Python", "ok", ", ".join([found, version_of("numpy"), version_of("ml_dtypes")]), "everything")


def gpu() -> Finding:
    """The cards, with NVIDIA's driver version where its tool tells it."""
    use = "running kernels on a card (without one they run on the CPU target)"
    found = survey()
    if not found.devices:
        fix = "an NVIDIA card with a driver for CUDA 12 or newer"
        return Finding("GPU", "missing", f"{found.nvidia}; {found.amd}", use, fix)
    names = [f"{device.name} ({device.arch or device.note})" for device in found.devices]
    version = driver_version()
    words = [*names, *([found.nvidia] if found.devices[0].driver else []), *([f"driver {version}"] if version else [])]
    return Finding("GPU", "ok", ", ".join(words), use)


def driver_version() -> str:
    """NVIDIA's own number of its driver, such as 580.65.06; nothing where nvidia-smi cannot be run."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return ""
    command = [smi, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.split()[0] if ran.returncode == 0 and ran.stdout.split() else ""


def compiler() -> str:
    """NVRTC, really loaded: an installed wheel whose library cannot be loaded is of no use."""
    nvrtc.library()
    return f"{nvrtc.version()}, {version_of('cuda-bindings')}"


def jupyter() -> Finding:
    """JupyterLab, in a version that our extension is built for."""
    found = package("JupyterLab", "notebooks", "lab", "jupyterlab")
    numbers = [int(part) for part in re.findall(r"\d+", found.found)[:2]]
    if found.state == "ok" and numbers < [4, 2]:
        fix = f"{sys.executable} -m pip install -U 'jupyterlab>=4.2'"
        return Finding("JupyterLab", "warning", f"{found.found} is older than 4.2", "notebooks", fix)
    return found


def extension() -> Finding:
    """Our JupyterLab extension, and whether it was built from this package's sources."""
    name, use = "JupyterLab extension", "drawing results in JupyterLab and Notebook (static HTML shows without it)"
    fix = f"{sys.executable} -m pip install --force-reinstall --no-deps '{origin()}', with npm's registry reachable"
    folder = lab_extension.installed()
    if folder is None:
        return Finding(name, "missing", "not installed", use, fix)
    if not lab_extension.fresh(folder):
        return Finding(name, "warning", f"{folder} was built from other sources", use, fix)
    return Finding(name, "ok", str(folder), use)


def chromium() -> Finding:
    """A browser for the tests that need one; notebooks open in any."""
    path = browser.find_browser()
    return Finding(
        "browser", "ok" if path else "missing", path or "no Chromium or Chrome", "browser tests", browser.FIX
    )


def hip_compiler() -> Finding:
    """A clang that compiles HIP text for the newest AMD row, tried on an empty kernel file."""
    use = "checking HIP text for AMD cards without ROCm"
    try:
        path = clang.clang(HIP_ARCH)
    except TileError as problem:
        return Finding("clang for HIP", "missing", problem.found, use, problem.fix)
    return Finding("clang for HIP", "ok", f"{path}, {clang.version(path)}", use)


def has(name: str) -> bool:
    """Whether a package could be imported, without importing it."""
    return importlib.util.find_spec(name) is not None
