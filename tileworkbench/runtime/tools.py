"""Runs a compiler's command-line tool: absolute path, argument list, no shell, a private folder, a bare environment."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import BuildError, MissingDependency
from ..options import options


@dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A private (0700) temporary folder."""
    with tempfile.TemporaryDirectory(prefix="tileworkbench-") as name:
        yield Path(name)


def call(tool: Path, arguments: list[str], cwd: Path) -> Answer:
    """Runs `tool` to its end; BuildError when it does not come back, MissingDependency when it cannot start."""
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(cwd)}
    if os.name == "nt":
        environment = {"PATH": os.environ.get("PATH", ""), "SYSTEMROOT": os.environ.get("SYSTEMROOT", "")}
    try:
        done = subprocess.run(
            [str(tool), *arguments],
            cwd=cwd,
            env=environment,
            capture_output=True,
            timeout=options.compile_timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuildError(
            f"{tool.name} did not end within {options.compile_timeout:g} s", fix="raise the option compile_timeout"
        ) from None
    except OSError as error:
        raise MissingDependency(
            f"{tool} cannot be started: {error.strerror}", rule="the tool is an executable"
        ) from None
    return Answer(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
