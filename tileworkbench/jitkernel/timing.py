"""How long each stage of a compilation took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Timing:
    """Seconds by stage (read, passes, emit, build), in order. `cached` says that the code came from the disk cache."""

    stages: dict[str, float] = field(default_factory=dict)
    cached: bool = False

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return sum(self.stages.values())

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the time of the block to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - start

    def __str__(self) -> str:
        parts = [f"{name} {seconds * 1e3:.1f} ms" for name, seconds in self.stages.items()]
        return ", ".join(parts) + (" (from the disk cache)" if self.cached else "")
