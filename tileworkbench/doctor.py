"""What this machine has for tileworkbench, and the exact fix for what it lacks. Imports no optional package."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

PACKAGE = Path(__file__).resolve().parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
# Looked at by absolute path too: services and fresh homes often have a PATH without them.
BROWSER_PATHS = (
    "/usr/bin/chromium",
    "/usr/lib/chromium/chromium",
    "/usr/bin/google-chrome",
    "/opt/google/chrome/chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
)
BROWSER_FIX = (
    "install Chromium or Chrome (Debian: apt-get install chromium), or run: python -m playwright install chromium"
)
NO_MACOS = "NVIDIA publishes no macOS wheels: PTX, SASS and register counts need Linux or Windows; all else works"
STATES = {"ok": "ok", "missing": "--", "warning": "!!"}


@dataclass(frozen=True)
class Finding:
    """One thing looked for. `state` is "ok", "missing" or "warning"; `fix` is the command that brings it."""

    name: str
    state: str
    found: str
    use: str
    fix: str = ""


def examine() -> tuple[Finding, ...]:
    """Every finding, in the order in which a user needs them. Reads the machine; changes nothing."""
    probes = (python, gpu, nvrtc, nvdisasm, cupy, torch, ipython, jupyter, labextension, widgets, browser, clang)
    return tuple(probe() for probe in probes)


def text(findings: tuple[Finding, ...]) -> str:
    """One line a finding, and its fix below it where something is to be done."""
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"[{STATES[finding.state]}] {finding.name:<{width}}  {finding.found}")
        if finding.state != "ok":
            lines.append(f"     {'':<{width}}  for {finding.use}" + (f"; fix: {finding.fix}" if finding.fix else ""))
    return "\n".join(lines)


def version_of(*distributions: str) -> str | None:
    """`name version` of the first distribution that is installed."""
    for name in distributions:
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return None


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


def first_line(*command: str) -> str | None:
    """The first line that a tool prints, or None if it cannot be run."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = ran.stdout.strip().splitlines()
    return lines[0].strip() if ran.returncode == 0 and lines else None


def python() -> Finding:
    found = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    base = version_of("numpy"), version_of("ml_dtypes")
    return Finding("Python", "ok", ", ".join([found, *(name for name in base if name)]), "everything")


def cuda_driver() -> ctypes.CDLL | None:
    """The CUDA driver library, initialised; None without one, or when it refuses (no card, no permission)."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return None
    return driver if driver.cuInit(0) == 0 else None


def cuda_devices() -> tuple[str, ...]:
    """Names of the CUDA devices with their compute capability, e.g. ("NVIDIA H200 (sm_90)",)."""
    driver = cuda_driver()
    count = ctypes.c_int()
    if driver is None or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return ()
    return tuple(device_name(driver, ordinal) for ordinal in range(count.value))


def device_name(driver: ctypes.CDLL, ordinal: int) -> str:
    name, major, minor = ctypes.create_string_buffer(256), ctypes.c_int(), ctypes.c_int()
    driver.cuDeviceGetName(name, len(name), ordinal)
    driver.cuDeviceGetAttribute(ctypes.byref(major), 75, ordinal)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, ordinal)
    return f"{name.value.decode(errors='replace')} (sm_{major.value}{minor.value})"


def driver_version() -> str:
    """The driver's own version by nvidia-smi, else the newest CUDA it can run."""
    smi = first_line("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    newest = ctypes.c_int()
    driver = cuda_driver()
    if driver is not None:
        driver.cuDriverGetVersion(ctypes.byref(newest))
    cuda = f"CUDA {newest.value // 1000}.{newest.value % 1000 // 10}"
    return f"driver {smi}, {cuda}" if smi else f"driver for {cuda}"


def gpu() -> Finding:
    use = "running kernels on a card (without one they run on the CPU target)"
    devices = cuda_devices()
    if devices:
        return Finding("GPU", "ok", f"{', '.join(devices)}; {driver_version()}", use)
    smi = first_line("nvidia-smi", "-L")
    if smi:
        return Finding(
            "GPU", "warning", f"{smi}, but the driver library cannot be used", use, "reinstall NVIDIA's driver"
        )
    return Finding("GPU", "missing", "no CUDA device", use, "an NVIDIA card with a driver for CUDA 12 or newer")


def packaged_file(distribution: str, ending: str) -> Path | None:
    """A file that an installed distribution brought."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    found = next((Path(str(file.locate())) for file in files if file.as_posix().endswith(ending)), None)
    return found if found is not None and found.exists() else None


def nvrtc() -> Finding:
    use = "CUDA, PTX and register counts"
    if platform.system() == "Darwin":
        return Finding("NVRTC", "missing", NO_MACOS, use)
    lacking = [
        name
        for name in ("cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-cccl")
        if version_of(name) is None
    ]
    if lacking:
        return Finding("NVRTC", "missing", f"not installed: {', '.join(lacking)}", use, install("nvrtc"))
    if packaged_file("nvidia-cuda-runtime", "include/cuda_fp16.h") is None:
        return Finding("NVRTC", "warning", "the wheel's headers are gone", use, install("nvrtc") + " --force-reinstall")
    return Finding("NVRTC", "ok", f"{version_of('nvidia-cuda-nvrtc')}, {version_of('cuda-bindings')}", use)


def nvdisasm() -> Finding:
    use = "SASS"
    path = packaged_file("nvidia-cuda-nvdisasm", "/nvdisasm") or packaged_file("nvidia-cuda-nvdisasm", "/nvdisasm.exe")
    if path is not None:
        return Finding("nvdisasm", "ok", f"{version_of('nvidia-cuda-nvdisasm')}", use)
    on_path = shutil.which("nvdisasm")
    if on_path:
        return Finding("nvdisasm", "ok", on_path, use)
    if platform.system() == "Darwin":
        return Finding("nvdisasm", "missing", NO_MACOS, use)
    return Finding("nvdisasm", "missing", "not installed", use, install("nvrtc"))


def cupy() -> Finding:
    use = "loading and launching kernels on a card"
    found = version_of("cupy-cuda13x", "cupy-cuda12x", "cupy")
    if found or importlib.util.find_spec("cupy"):
        return Finding("CuPy", "ok", found or "cupy", use)
    fix = "needs Linux or Windows" if platform.system() == "Darwin" else install("cuda")
    return Finding("CuPy", "missing", "not installed", use, fix)


def torch() -> Finding:
    use = "calling kernels on torch tensors"
    found = version_of("torch")
    return Finding("torch", "ok" if found else "missing", found or "not installed", use, install("torch"))


def ipython() -> Finding:
    use = "%%tilekernel"
    found = version_of("ipython")
    return Finding(
        "IPython",
        "ok" if found else "missing",
        found or "not installed",
        use,
        f"{sys.executable} -m pip install ipython",
    )


def jupyter() -> Finding:
    use = "notebooks"
    found = version_of("jupyterlab")
    if not found:
        return Finding("JupyterLab", "missing", "not installed", use, install("lab"))
    major, minor = (int(part) for part in re.findall(r"\d+", found)[:2])
    if (major, minor) < (4, 2):
        return Finding("JupyterLab", "warning", f"{found} is older than 4.2", use, "pip install 'jupyterlab>=4.2'")
    return Finding("JupyterLab", "ok", found, use)


def widgets() -> Finding:
    use = "result.widget(), live controls"
    found = version_of("ipywidgets")
    return Finding("ipywidgets", "ok" if found else "missing", found or "not installed", use, install("lab"))


def sources_digest() -> str | None:
    """The digest of the extension's sources: computed in a checkout, in a wheel written by the build hook."""
    script = PACKAGE.parent / "extension" / "sources.py"
    if script.is_file():
        return str(runpy.run_path(str(script))["digest"](PACKAGE.parent))
    stamp = PACKAGE / "labextension.sha256"
    return stamp.read_text().strip() if stamp.is_file() else None


def installed_extension() -> Path | None:
    """The folder of the labextension that JupyterLab of this environment loads."""
    roots = [Path(root) / "share/jupyter" for root in (sys.prefix, Path.home() / ".local", "/usr/local", "/usr")]
    roots += [Path(folder) for folder in os.environ.get("JUPYTER_PATH", "").split(os.pathsep) if folder]
    folders = (root / "labextensions" / "tileworkbench" for root in roots)
    return next((folder for folder in folders if (folder / "package.json").is_file()), None)


def labextension() -> Finding:
    use = "drawing results in JupyterLab and Notebook (static HTML shows without it)"
    again = f"{sys.executable} -m pip install --force-reinstall --no-deps '{origin()}', with npm's registry reachable"
    folder = installed_extension()
    if folder is None:
        return Finding("JupyterLab extension", "missing", "not installed", use, again)
    stamp, wanted = folder / "sources.sha256", sources_digest()
    if not stamp.is_file() or wanted is None or stamp.read_text().strip() != wanted:
        return Finding("JupyterLab extension", "warning", f"{folder} was built from other sources", use, again)
    return Finding("JupyterLab extension", "ok", str(folder), use)


def find_browser() -> str | None:
    """Path of a Chromium or Chrome: on PATH, at a usual place, or fetched by Playwright."""
    on_path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if on_path:
        return on_path
    usual = next((path for path in BROWSER_PATHS if os.access(path, os.X_OK)), None)
    return usual or playwright_browser()


def playwright_browser() -> str | None:
    caches = {"Darwin": "Library/Caches/ms-playwright", "Windows": "AppData/Local/ms-playwright"}
    cache = Path(
        os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
        or Path.home() / caches.get(platform.system(), ".cache/ms-playwright")
    )
    patterns = (
        "chromium-*/chrome-*/chrome",
        "chromium-*/chrome-*/chrome.exe",
        "chromium-*/*/Chromium.app/Contents/MacOS/Chromium",
    )
    return next((str(path) for pattern in patterns for path in sorted(cache.glob(pattern), reverse=True)), None)


def browser() -> Finding:
    path = find_browser()
    return Finding(
        "browser", "ok" if path else "missing", path or "no Chromium or Chrome", "the browser tests", BROWSER_FIX
    )


def clang() -> Finding:
    use = "checking HIP text for AMD cards without ROCm"
    path = next((found for name in ("clang-22", "clang-23", "clang") if (found := shutil.which(name))), None)
    line = first_line(path, "--version") if path else None
    version = re.search(r"version (\d+)", line or "")
    if path is None or version is None:
        return Finding("clang for HIP", "missing", "not installed", use, "apt-get install clang-22 lld-22")
    if int(version[1]) < 22:
        return Finding(
            "clang for HIP", "warning", f"{path} {version[1]} is older than 22", use, "apt-get install clang-22 lld-22"
        )
    return Finding("clang for HIP", "ok", f"{path} {version[1]}", use)
