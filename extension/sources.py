"""What the JupyterLab extension is built from, and its digest. Run by path from the build hook and the doctor."""

from __future__ import annotations

import hashlib
from pathlib import Path

PATTERNS = (
    "extension/src/**/*",
    "extension/*.json",
    "extension/yarn.lock",
    "extension/.yarnrc.yml",
    "tileworkbench/views/*.js",
    "tileworkbench/views/*.d.ts",
)


def digest(root: Path) -> str:
    """sha256 over the names and bytes of the source files, line ends of Windows checkouts set aside."""
    files = sorted({path for pattern in PATTERNS for path in root.glob(pattern) if path.is_file()})
    total = hashlib.sha256()
    for path in files:
        content = path.read_bytes().replace(b"\r\n", b"\n")
        total.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()
