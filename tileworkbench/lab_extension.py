"""Whether the JupyterLab extension is installed and built from this package's sources: pip hides build warnings."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def sources_digest() -> str | None:
    """The digest of the extension's sources: computed in a checkout, in a wheel written by the build hook."""
    script = PACKAGE.parent / "extension" / "sources.py"
    if script.is_file():
        return str(runpy.run_path(str(script))["digest"](PACKAGE.parent))
    stamp = PACKAGE / "labextension.sha256"
    return stamp.read_text().strip() if stamp.is_file() else None


def installed() -> Path | None:
    """The folder that JupyterLab of this environment loads the extension from."""
    named = [Path(folder) for folder in os.environ.get("JUPYTER_PATH", "").split(os.pathsep) if folder]
    usual = [Path(root) / "share/jupyter" for root in (sys.prefix, Path.home() / ".local", "/usr/local", "/usr")]
    folders = (root / "labextensions" / "tileworkbench" for root in [*named, *usual])
    return next((folder for folder in folders if (folder / "package.json").is_file()), None)


def fresh(folder: Path) -> bool:
    """Whether what is installed in `folder` was built from this package's sources."""
    stamp, wanted = folder / "sources.sha256", sources_digest()
    return wanted is not None and stamp.is_file() and stamp.read_text().strip() == wanted
