"""Our kernels against torch's (cuBLAS, cuDNN) on one card: same inputs, rounds interleaved, median of per-round ratios.

`python tests/benchmarks/gpu_kernels.py [--json FILE]` on a machine with an NVIDIA card, torch and the driver. Inputs
are random normal; they exceed the L2 cache or the cache is flushed between launches (triton.testing.do_bench does).
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import triton.testing  # noqa: E402

import tileworkbench as tw  # noqa: E402
from tests import kernels  # noqa: E402
from tests.end_to_end.planned_attention import planned_attention  # noqa: E402
from tileworkbench.codegen.emit import emit  # noqa: E402
from tileworkbench.pipeline import PASSES  # noqa: E402
from tileworkbench.runtime import nvrtc  # noqa: E402
from tileworkbench.runtime.launch import Launcher  # noqa: E402
from tileworkbench.target import Target  # noqa: E402

ROUNDS = 11


def timed(fn: Callable[[], Any]) -> float:
    return float(triton.testing.do_bench(fn, warmup=10, rep=40, return_mode="median"))


def compare(name: str, ours: Callable[[], Any], peer: Callable[[], Any], work: float, unit: str) -> dict[str, Any]:
    """`work` in units of 1e9 per launch; rates are work / ms, in T units for flops and GB/s × 1e-3 for bytes."""
    ours(), peer()
    pairs = [(timed(ours), timed(peer)) for _ in range(ROUNDS)]
    ratios = sorted(p / o for o, p in pairs)
    row = {
        "name": name,
        "ours": round(work / statistics.median(o for o, _ in pairs), 1),
        "torch": round(work / statistics.median(p for _, p in pairs), 1),
        "unit": unit,
        "ratio": round(statistics.median(ratios), 3),
        "interval": [round(ratios[1], 3), round(ratios[-2], 3)],
    }
    print(json.dumps(row), flush=True)
    return row


def check(got: torch.Tensor, truth: torch.Tensor, limit: float) -> None:
    error = ((got.double() - truth.double()).norm() / truth.double().norm()).item()
    if not error <= limit:
        raise SystemExit(f"wrong result: relative error {error}")


def gemm(m: int, n: int, k: int, target: str, **options: Any) -> dict[str, Any]:
    kernel = tw.compile(kernels.gemm(m, n, k, out="float16", **options), out_idx=[-1], target=target)
    a, b = (torch.randn(*s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
    check(kernel(a, b), a.double() @ b.double(), 1e-3)
    tile = f"{options['BM']}x{options['BN']}x{options['BK']}x{options['stages']}"
    name = f"gemm fp16 {m}x{n}x{k} {target} {tile}"
    return compare(name, lambda: kernel(a, b), lambda: a @ b, 2 * m * n * k / 1e9, "TFLOP/s")


def attention(b: int, h: int, s: int, d: int, causal: bool, by_hand: bool = False) -> dict[str, Any]:
    options: dict[str, Any] = {"BM": 128, "BN": 128, "threads": 256, "causal": causal}
    if by_hand:
        goal = Target.of("sm_90a")
        kernel = planned_attention(b, h, s, d, **options)
        names = [name for name, _, _ in PASSES]
        for _, apply, _ in PASSES[names.index("schedule") :]:
            kernel = apply(kernel, goal)
        source = emit(kernel, goal)
        run: Any = Launcher([(source, nvrtc.build(source))], out_idx=[3])
    else:
        run = tw.compile(kernels.attention(b, h, s, d, **options), out_idx=[-1], target="sm_90a")
    q, k, v = (torch.randn(b, s, h, d, device="cuda", dtype=torch.float16) for _ in range(3))
    peers = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    sdpa = torch.nn.functional.scaled_dot_product_attention
    check(run(q, k, v), sdpa(*peers, is_causal=causal).transpose(1, 2), 2e-3)
    work = 4 * b * h * s * s * d * (0.5 if causal else 1) / 1e9
    name = f"attention {b},{h},{s},{d}{' causal' if causal else ''}{' planned by hand' if by_hand else ''}"
    return compare(name, lambda: run(q, k, v), lambda: sdpa(*peers, is_causal=causal), work, "TFLOP/s")


def add(m: int, n: int, dtype: str) -> dict[str, Any]:
    kernel = tw.compile(kernels.add_2d(m, n, 32, 128, dtype=dtype), out_idx=[-1], target="sm_90a")
    a, b = (torch.randn(m, n, device="cuda").to(getattr(torch, dtype)) for _ in range(2))
    if not torch.equal(kernel(a, b), a + b):
        raise SystemExit("wrong result: add")
    return compare(f"add {dtype} {m}x{n}", lambda: kernel(a, b), lambda: a + b, 3 * a.nbytes / 1e6, "GB/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    card = {
        "card": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda,
        "nvrtc": nvrtc.version(), "python": platform.python_version(),
    }  # fmt: skip
    print(json.dumps(card), flush=True)
    big = {"BM": 128, "BN": 256, "BK": 64, "stages": 4, "threads": 256, "panel": 16}
    rows = [
        add(16384, 16384, "float32"),
        add(16384, 16384, "float16"),
        gemm(4096, 4096, 4096, "sm_90a", **big),
        gemm(8192, 8192, 8192, "sm_90a", **big),
        gemm(8192, 1024, 8192, "sm_90a", **big),
        gemm(4096, 4096, 4096, "sm_80/H200", BM=128, BN=128, BK=32, stages=4, threads=128, panel=8),
        attention(4, 32, 4096, 128, False),
        attention(4, 32, 4096, 128, True),
        attention(4, 32, 4096, 64, False),
        attention(4, 32, 4096, 128, False, by_hand=True),
        attention(4, 32, 4096, 128, True, by_hand=True),
    ]
    if chosen.json:
        chosen.json.write_text(json.dumps({**card, "rounds": ROUNDS, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
