"""Every knob of the package: type, default, environment name, and one sentence. Nothing else reads an environment
variable of ours, and no pass holds a setting of its own.

A value is taken, in this order, from the innermost `with options(name=value):`, from `options.name = value` (the whole
process), from the environment (ours, then another program's name that a door for its users added), from the default.
Blocks are held in a context variable, so they are private to a thread or an asyncio task; a pool's threads do not see
them (pass `options.changed()` along and enter it there).
"""

from __future__ import annotations

import difflib
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .errors import OptionError
from .knobs import Knob


def _cache_folder() -> Path:
    """The platform's place for caches; a folder of the temporary one when there is no home."""
    try:
        home = Path.home()
    except RuntimeError:
        return Path(tempfile.gettempdir()) / "tileworkbench-cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "tileworkbench"
    variable, otherwise = (
        ("LOCALAPPDATA", home / "AppData" / "Local") if os.name == "nt" else ("XDG_CACHE_HOME", home / ".cache")
    )
    return Path(os.environ.get(variable) or otherwise) / "tileworkbench"


GIB = 2**30
_KNOBS = (
    Knob("target", "text", "auto", 'what kernels are built for; "auto" is the GPU present, else the CPU'),
    Knob("cache", "bool", True, "keep built kernels on disk"),
    Knob("cache_dir", "path", _cache_folder, "the folder of the disk cache"),
    Knob("cache_size", "bytes", 4 * GIB, "the disk cache drops its oldest entries above this size"),
    Knob("fast_math", "bool", False, "approximate division, exp, log and friends, and flushed denormals", codegen=True),
    Knob("line_info", "bool", True, "keep source lines in the binary, for profilers and SASS views", codegen=True),
    Knob("profile", "bool", False, "stamp clocks into the kernel, for the timeline", codegen=True),
    Knob("unroll_limit", "int", 4096, "the most statements one unrolled loop may become", codegen=True, low=1),
    Knob("ir_node_limit", "int", 200_000, "the most nodes one kernel may have", low=1000),
    Knob("compile_timeout", "seconds", 60.0, "the device compiler is stopped after this time"),
    Knob("verify", "choice", "off", "check the IR's invariants between passes", choices=("off", "on")),
    Knob("show_internal_frames", "bool", False, "keep this package's own frames in tracebacks"),
    Knob("html", "choice", "static", "how results show themselves in a notebook", choices=("static", "live")),
    Knob("simulate_memory_limit", "bytes", 2 * GIB, "the most memory a simulated kernel may take", low=2**20),
    Knob("simulate_step_limit", "int", 10_000_000, "the most statements a simulated kernel may execute", low=1),
    Knob("schedule", "choice", "eager", "when the thread machine lets asynchronous work land",
         choices=("eager", "latest", "random")),
    Knob("seed", "int", 0, "the seed of random schedules, inputs and searches", high=2**64 - 1),
)  # fmt: skip

KNOBS: dict[str, Knob] = {knob.name: knob for knob in _KNOBS}


def _knob(name: str) -> Knob:
    knob = KNOBS.get(name)
    if knob is None:
        near = difflib.get_close_matches(name, KNOBS, n=1, cutoff=0.5)
        fix = f"did you mean {near[0]!r}?" if near else "print(tileworkbench.options.describe()) lists them"
        raise OptionError(f"unknown option {name!r}", rule="options: " + ", ".join(KNOBS), fix=fix)
    return knob


@dataclass(frozen=True)
class Guest:
    """Another program's environment name of a knob; `read` gives the value that its text means, None for none."""

    environment: str
    read: Callable[[str], object]


class Options:
    """The knobs as attributes: `options.target`, `options.cache = False`, `with options(verify="on"):`."""

    __slots__ = ("_blocks", "_guests", "_lock", "_process")
    _blocks: ContextVar[Mapping[str, object]]
    _guests: dict[str, Guest]
    _lock: threading.Lock
    _process: dict[str, object]

    def __init__(self) -> None:
        object.__setattr__(self, "_process", {})
        object.__setattr__(self, "_guests", {})
        object.__setattr__(self, "_lock", threading.Lock())
        object.__setattr__(self, "_blocks", ContextVar("tileworkbench_options", default=MappingProxyType({})))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy, pickle and inspect ask for these
            raise AttributeError(name)
        return self._found(_knob(name))[0]

    def __setattr__(self, name: str, value: object) -> None:
        """Set for the whole process."""
        checked = _knob(name).read(value)
        with self._lock:
            self._process[name] = checked

    def __delattr__(self, name: str) -> None:
        """Back to the environment or the default."""
        with self._lock:
            self._process.pop(_knob(name).name, None)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *KNOBS]

    @contextmanager
    def __call__(self, **values: object) -> Iterator[Options]:
        """Values for the length of a `with` block, in this thread; all are checked before any is set."""
        checked = {name: _knob(name).read(value) for name, value in values.items()}
        token = self._blocks.set({**self._blocks.get(), **checked})
        try:
            yield self
        finally:
            self._blocks.reset(token)

    def read_also(self, guests: Mapping[str, Guest]) -> None:
        """Other programs' environment names, by knob; those that were read until now are not any more."""
        object.__setattr__(self, "_guests", {_knob(name).name: guest for name, guest in guests.items()})

    def changed(self) -> dict[str, object]:
        """What `with` blocks, assignments and other programs' names have set here: `with options(**changed):` repeats
        it in a worker."""
        guests = {n: self._found(KNOBS[n]) for n, guest in self._guests.items() if os.environ.get(guest.environment)}
        told = {n: value for n, (value, origin) in guests.items() if origin == self._guests[n].environment}
        return {**told, **self._process, **self._blocks.get()}

    def origin(self, name: str) -> str:
        """Where a knob's value comes from: "block", "set", its environment name, or "default"."""
        return self._found(_knob(name))[1]

    def digest(self) -> str:
        """A hash of the knobs that a built kernel depends on; part of every cache key."""
        lines = [f"{name}={self._found(knob)[0]!r}" for name, knob in KNOBS.items() if knob.codegen]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def describe(self) -> str:
        """All knobs as a table: name, value, where it comes from, what it does."""
        rows = [("option", "value", "from", "what it does")]
        for name, knob in KNOBS.items():
            try:
                value, origin = self._found(knob)
            except OptionError:  # the table must still show the other knobs, and which one is wrong
                guest = self._guests.get(name)
                origin = guest.environment if guest and not os.environ.get(knob.environment) else knob.environment
                value = f"invalid: {os.environ.get(origin)!r}"
            rows.append((name, str(value), origin, f"{knob.text} ({knob.accepts()}; {knob.environment})"))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]) for row in rows
        )

    def _found(self, knob: Knob) -> tuple[object, str]:
        block = self._blocks.get()
        if knob.name in block:
            return block[knob.name], "block"
        if knob.name in self._process:
            return self._process[knob.name], "set"
        text = os.environ.get(knob.environment)
        if text is not None and text != "":
            return knob.read(text, f"from the environment variable {knob.environment}"), knob.environment
        guest = self._guests.get(knob.name)
        text = os.environ.get(guest.environment) if guest is not None else None
        if guest is not None and text:
            try:
                value = guest.read(text)
            except OptionError:
                raise
            except ValueError:
                value = text
            if value is not None:
                return knob.read(value, f"from the environment variable {guest.environment}"), guest.environment
        return knob.default_value(), "default"


options = Options()
