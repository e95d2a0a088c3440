"""`python -m tests [pytest options]`: a browser if one can be had, then ruff, mypy, five minutes of the fuzzer
(not with options) and pytest; fails if any fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tileworkbench import browser

ROOT = Path(__file__).resolve().parent.parent
# Chromium alone starts without these, but Node in the wheel links libatomic and pages without a font draw nothing.
DEBIAN = ["chromium", "libatomic1", "fonts-dejavu-core"]


def run(*command: str) -> int:
    print("$", *command, flush=True)
    # Workers must collect the same tests in the same order, sets in parametrisations included.
    environment = {"PYTHONHASHSEED": "0", **os.environ}
    return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, env=environment).returncode


def debian_root() -> bool:
    """Ubuntu's chromium package only wraps a snap, so that Debian alone is served by apt."""
    release = Path("/etc/os-release")
    is_debian = release.is_file() and "ID=debian" in release.read_text().splitlines()
    return is_debian and os.geteuid() == 0 and shutil.which("apt-get") is not None


def get_browser() -> None:
    if browser.find_browser():
        return
    if debian_root():
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *DEBIAN)
    else:
        run(sys.executable, "-m", "playwright", "install", "chromium")


def workers(arguments: list[str]) -> list[str]:
    """One process a core, unless the caller decides; tests of one browser stay in one process."""
    decided = any(each.startswith(("-n", "--numprocesses", "--pdb")) for each in arguments)
    return [] if decided else ["-n", "auto", "--dist", "loadgroup"]


def fuzz() -> int:
    """Five minutes of random kernels, fewer where that is enough for them. The seeds are always the same, so that a
    commit passes or fails by itself."""
    seeds = ("--seconds=300", "--seed=1000000", "--count=140")
    return run(sys.executable, "-m", "tests.fuzz", *seeds, f"--jobs={os.cpu_count() or 1}")


def main(arguments: list[str]) -> int:
    get_browser()
    print(f"browser: {browser.find_browser() or 'none, the browser ring is skipped; ' + browser.FIX}")
    checks = {
        "ruff": run(sys.executable, "-m", "ruff", "check", "."),
        "mypy": run(sys.executable, "-m", "mypy"),
        "fuzz": 0 if arguments else fuzz(),
        # Last, so that its closing line is the last word.
        "pytest": run(sys.executable, "-m", "pytest", *workers(arguments), *arguments),
    }
    for name, status in checks.items():
        if status:
            print(f"{name} failed with status {status}", file=sys.stderr)
    return max(checks.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
