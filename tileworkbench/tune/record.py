"""The best configuration, as a result and as a JSON file."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..jitkernel import JITKernel
from ..options import options
from .search import Report

FORM = 1  # of the files; raised when what they hold changes


@dataclass
class AutotuneResult:
    """What a search found: the best `config` with its `latency` in milliseconds, the reference's, the compiled kernel,
    and all trials (`report` is None for one that comes from disk)."""

    latency: float | None = None
    config: dict[str, Any] | None = None
    ref_latency: float | None = None
    libcode: str | None = None
    func: Any = None
    kernel: JITKernel | None = None
    report: Report | None = field(default=None, repr=False)

    def save_to_disk(self, path: str | Path, verbose: bool = False) -> None:
        """Writes the configuration and the latencies as best.json in the folder `path`."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / "best.json", {"config": plain(self.config), "latency": self.latency, "ref": self.ref_latency})

    @classmethod
    def load_from_disk(cls, path: str | Path, *_: Any, **__: Any) -> AutotuneResult | None:
        """What `save_to_disk` wrote, without the kernel (compile the configuration); None when there is nothing."""
        found = load(Path(path) / "best.json")
        return None if found is None else cls(found["latency"], found["config"], found["ref"])


def plain(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A configuration as JSON has it. OptionError for a value that would not come back as it was."""
    if config is None:
        return None
    for name, value in config.items():
        if name != "pass_configs" and not representable(value):
            raise OptionError(
                f"{name}={value!r} cannot be kept in a file",
                rule="configurations on disk hold numbers, strings, bools, None and lists of them",
                fix="turn the disk cache off (disable_cache()) or use plain values",
            )
    return {
        name: {str(getattr(k, "value", k)): v for k, v in value.items()} if isinstance(value, Mapping) else value
        for name, value in config.items()
    }


def representable(value: Any) -> bool:
    """Whether JSON gives the value back with its type."""
    if isinstance(value, list):
        return all(representable(v) for v in value)
    return value is None or type(value) in (bool, int, float, str)


def digest(*parts: Any) -> str:
    """A key over the text of its parts and of this package's version."""
    try:
        version = metadata.version("tileworkbench")
    except metadata.PackageNotFoundError:
        version = str(Path(__file__).parent)
    return hashlib.sha256("\0".join([version, str(FORM), *map(repr, parts)]).encode()).hexdigest()


def place(key: str) -> Path | None:
    """The file of a key in the cache folder; None where the disk cache or that of searches is off."""
    off = os.environ.get("TILELANG_AUTO_TUNING_DISABLE_CACHE", "0").lower() in ("1", "true", "yes", "on")
    return None if off or not options.cache else Path(options.cache_dir) / "tune" / f"{key}.json"


def load(path: Path) -> dict[str, Any] | None:
    """The record in a file; None when there is none, or it is not one of ours."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    fit = isinstance(found, dict) and found.get("form") == FORM and isinstance(found.get("config"), dict)
    return found if fit else None


def write(path: Path, record: dict[str, Any]) -> None:
    """Under a temporary name first, so that a reader never sees half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"form": FORM, **record}, file)
    os.replace(name, path)
