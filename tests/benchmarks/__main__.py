"""`python -m tests.benchmarks [names]`: the benchmarks that this machine can run, one after the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tileworkbench.target import detect

HERE = Path(__file__).resolve().parent
CPU = ("time_to_result", "cpu_tile")
GPU = ("gpu_kernels", "launch_cost")


def main(names: list[str]) -> int:
    card = any(found.driver for found in detect())
    chosen = names or [*CPU, *(GPU if card else ())]
    unknown = [n for n in chosen if n not in CPU + GPU]
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(CPU + GPU)}", file=sys.stderr)
        return 2
    if not card and not names:
        print(f"no CUDA device: {', '.join(GPU)} are left out")
    status = 0
    for name in chosen:
        print(f"== {name}", flush=True)
        status |= subprocess.run([sys.executable, HERE / f"{name}.py"], cwd=HERE.parents[1]).returncode
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
