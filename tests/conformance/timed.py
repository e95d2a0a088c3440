"""`python -m tests.conformance.timed --times FILE [--plain] script.py`: an example script and the times of its kernels.

FILE gets one JSON object: kernel name → [launches, shortest ms, median ms], of the kernels that were compiled from tile
programs. torch's profiler (CUPTI) takes the times on the card, the same way for this package and for TileLang."""

from __future__ import annotations

import argparse
import json
import re
import runpy
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tileworkbench.compat.script import run_script

OWN = re.compile(r"^[A-Za-z_]\w*_kernel(_\d+)?$")  # plain C names: torch's and Triton's are mangled or have others
ENDING = re.compile(r"(_v)?_kernel(_\d+)?$")


def kernel_times(events: Any) -> dict[str, list[float]]:
    """By the name of the tile program: launches, and milliseconds of the shortest and of the median launch."""
    found: dict[str, list[float]] = {}
    for event in events:
        name = str(event.name())
        if OWN.match(name) and not name.startswith("triton"):
            # A second kernel of one function is called name_kernel_1 by TileLang and name_1_kernel here.
            found.setdefault(ENDING.sub(r"\2", name), []).append(float(event.duration_ns()) * 1e-6)
    return {name: [len(t), round(min(t), 6), round(statistics.median(t), 6)] for name, t in sorted(found.items())}


def profiled(act: Callable[[], None], times: Path) -> None:
    """Runs `act` and writes what the card did, however it ends."""
    try:
        import torch
    except ImportError:
        return act()
    if not torch.cuda.is_available():
        return act()
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True)
    profiler.start()
    try:
        act()
    finally:
        torch.cuda.synchronize()
        profiler.stop()
        results = profiler.profiler.kineto_results if profiler.profiler else None
        times.write_text(json.dumps(kernel_times(results.events() if results else ())))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=Path, required=True)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("script")
    given = parser.parse_args(arguments)

    def act() -> None:
        if given.plain:
            sys.argv = [given.script]
            sys.path.insert(0, str(Path(given.script).resolve().parent))
            runpy.run_path(given.script, run_name="__main__")
        else:
            run_script(given.script)

    profiled(act, given.times.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
