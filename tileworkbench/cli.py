"""The `tileworkbench` command: demo, lab, doctor, bench, cache."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from . import doctor
from .errors import MissingDependency, OptionError, TileError
from .runtime.cache import default

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit status; a user's mistake is printed without a traceback and gives 2."""
    chosen = parser().parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except TileError as problem:
        print(f"tileworkbench: {problem}", file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    """The commands and their arguments, each with the function that runs it."""
    root = argparse.ArgumentParser(prog="tileworkbench", description="A notebook workbench for GPU tile kernels.")
    commands = root.add_subparsers(dest="command", required=True, metavar="command")
    shown = commands.add_parser("demo", help="compile, run and check the first tutorial's kernels")
    shown.add_argument("--report", type=Path, default=Path("tileworkbench-demo.html"), metavar="PATH")
    shown.set_defaults(run=run_demo)
    lab = commands.add_parser("lab", help="open JupyterLab on the notebooks")
    lab.add_argument("directory", nargs="?", type=Path, default=Path("notebooks"), metavar="DIR")
    lab.set_defaults(run=run_lab)
    commands.add_parser("doctor", help="what is there, and the fix for what is not").set_defaults(run=run_doctor)
    bench = commands.add_parser("bench", help="run the benchmarks of a checkout")
    bench.add_argument("rest", nargs="*", metavar="ARGUMENT", help="handed to the benchmarks; write -- before options")
    bench.set_defaults(run=run_bench)
    cache = commands.add_parser("cache", help="size of the build cache, or empty it")
    cache.add_argument("action", nargs="?", choices=("stats", "clear"), default="stats")
    cache.set_defaults(run=run_cache)
    return root


def run_demo(chosen: argparse.Namespace) -> int:
    """Compiles, runs and checks the first tutorial; 1 when a kernel is wrong."""
    from . import demo  # the whole compiler: only this command needs it

    return demo.main(chosen.report)


def run_doctor(_: argparse.Namespace) -> int:
    print(doctor.text(doctor.examine()))
    return 0


def run_lab(chosen: argparse.Namespace) -> int:
    """Opens JupyterLab on a folder and stays until it ends."""
    if not doctor.has("jupyterlab"):
        raise MissingDependency("JupyterLab is not installed", fix=doctor.install("lab"))
    directory = notebooks(chosen.directory)
    # No token, origin or root option is given: Jupyter's own protection stays as the user configured it.
    return subprocess.run([sys.executable, "-m", "jupyterlab", str(directory)]).returncode


def notebooks(directory: Path) -> Path:
    """The folder to open: `directory` if it is there, else a copy of the notebooks that came with the package."""
    if directory.is_dir():
        return directory
    if directory.exists():
        raise OptionError(f"{directory} is not a folder", fix="tileworkbench lab DIR")
    packaged = next((folder for folder in (PACKAGE / "_notebooks", CHECKOUT / "notebooks") if folder.is_dir()), None)
    if packaged is None:
        raise OptionError(
            f"{directory} is not there, and this build has no notebooks to copy", fix="tileworkbench lab DIR"
        )
    shutil.copytree(packaged, directory, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    print(f"copied the notebooks to {directory}")
    return directory


def run_bench(chosen: argparse.Namespace) -> int:
    """Runs the benchmarks, which live in a checkout."""
    if not (CHECKOUT / "tests" / "benchmarks" / "__main__.py").is_file():
        raise OptionError(
            "the benchmarks are part of a checkout, not of the installed package", fix="clone the repository"
        )
    return subprocess.run([sys.executable, "-m", "tests.benchmarks", *chosen.rest], cwd=CHECKOUT).returncode


def run_cache(chosen: argparse.Namespace) -> int:
    """Says how large the build cache is, or empties it."""
    cache = default()
    stats = cache.stats()
    if stats.path is None:
        print(f"no build cache: {stats.trouble}")
    elif chosen.action == "clear":
        print(f"{cache.clear()} builds removed from {stats.path}")
    else:
        print(f"{stats.entries} builds, {stats.bytes / 2**20:.1f} of {stats.limit / 2**20:.0f} MiB, in {stats.path}")
    return 0
