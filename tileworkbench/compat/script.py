"""Running a script that says `import tilelang`."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from typing import Any

from ..errors import OptionError
from .alias import alias_tilelang

USAGE = (
    "usage: python -m tileworkbench.compat script.py [args]\n       python -m tileworkbench.compat -m module [args]\n"
)


def run_script(path: str, args: Sequence[str] = ()) -> dict[str, Any]:
    """Runs a file as `__main__` with `import tilelang` answered by this package, and gives its globals. `args` are what
    the script finds in sys.argv. OptionError when there is no such file."""
    if not os.path.isfile(path):
        raise OptionError(f"there is no file {path!r}", rule="the path of a Python script", fix=USAGE.splitlines()[0])
    with alias_tilelang(), _as_main(path, os.path.dirname(os.path.abspath(path)), args):
        return runpy.run_path(path, run_name="__main__")


def run_module(name: str, args: Sequence[str] = ()) -> dict[str, Any]:
    """`python -m name args` under the alias, as for pytest."""
    with alias_tilelang(), _as_main(name, os.getcwd(), args):
        return runpy.run_module(name, run_name="__main__", alter_sys=True)


class _as_main:
    """sys.argv and the first entry of sys.path as Python sets them for a script."""

    def __init__(self, name: str, folder: str, args: Sequence[str]) -> None:
        self.argv, self.folder = [name, *args], folder

    def __enter__(self) -> None:
        self.before = sys.argv, list(sys.path)
        sys.argv = self.argv
        sys.path.insert(0, self.folder)

    def __exit__(self, *_: object) -> None:
        sys.argv, sys.path[:] = self.before


def main(args: Sequence[str]) -> int:
    """The command; its result is the exit status."""
    if not args or args[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return 0 if args else 2
    if args[0] == "-m":
        if len(args) < 2:
            sys.stderr.write(USAGE)
            return 2
        run_module(args[1], args[2:])
        return 0
    if not os.path.isfile(args[0]):
        sys.stderr.write(f"there is no file {args[0]!r}\n{USAGE}")
        return 2
    run_script(args[0], args[1:])
    return 0
