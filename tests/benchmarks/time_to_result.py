"""Time from a kernel's text to machine code, by stage: a new process with an empty cache, and one with the disk cache.

`python tests/benchmarks/time_to_result.py [--json FILE]`. Imports are excluded; every row is a new process, and the
figure is the median of several. No GPU is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 5
KERNELS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "gemm": ((4096, 4096, 4096), {"BM": 128, "BN": 256, "stages": 3, "threads": 256, "out": "float16"}),
    "attention": ((4, 32, 4096, 128), {"BM": 128, "BN": 128, "threads": 256}),
    "add_2d": ((4096, 4096, 32, 128), {}),
}


def measure(name: str, target: str) -> dict[str, Any]:
    """One build in this process: seconds by stage, and one more compilation of the same kernel."""
    import tileworkbench as tw
    from tests import kernels

    tw.compile(kernels.add_1d(1024), target="cpu")  # what is imported on first use
    start = time.perf_counter()
    arguments, options = KERNELS[name]
    func = getattr(kernels, name)(*arguments, **options)
    made = tw.compile(func, target=target)
    registers = made.registers
    total = time.perf_counter() - start
    return {"total": total, "registers": registers, **made.timing.stages}


def child(name: str, target: str, cache: str) -> dict[str, Any]:
    env = os.environ | {"TILEWORKBENCH_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, __file__, "--child", name, target]
    return json.loads(subprocess.run(command, env=env, check=True, capture_output=True, text=True, cwd=ROOT).stdout)


def medians(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {key: round(statistics.median(r[key] for r in rows), 4) for key in rows[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=2)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(measure(*chosen.child)))
        return
    rows: list[dict[str, Any]] = []
    for name in KERNELS:
        cold, warm = [], []
        for _ in range(PROCESSES):
            with tempfile.TemporaryDirectory() as cache:
                os.chmod(cache, 0o700)
                cold.append(child(name, "sm_90a", cache))
                warm.append(child(name, "sm_90a", cache))
        for state, found in (("cold", cold), ("disk cache", warm)):
            rows.append({"kernel": name, "state": state, **medians(found)})
            print("  ".join(f"{k} {v}" for k, v in rows[-1].items()), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
