"""Speed of the CPU target on its three reference kernels, checks on, against NumPy and torch on the same cores.

    python tests/benchmarks/cpu_tile.py [rounds]

Rounds are interleaved (ours, peer, ours, peer, …); a row shows medians and the median of the rounds' ratios. Values are
checked before anything is timed. torch runs in a process of its own: its thread pool and NumPy's would share the cores.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import tileworkbench.language as T  # noqa: E402
from tests.simulate.tile.test_attention import attention  # noqa: E402
from tileworkbench.simulate.tile import run  # noqa: E402

N = 4 * 2**20
M = 1024

TORCH = """
import sys, torch
a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
torch.mm(a, b)
for line in sys.stdin:
    import time
    start = time.perf_counter()
    torch.mm(a, b)
    print(time.perf_counter() - start, flush=True)
"""


@T.prim_func
def add(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 1024), threads=128) as bx:
        for i in T.Parallel(1024):
            C[bx * 1024 + i] = A[bx * 1024 + i] + B[bx * 1024 + i]


@T.prim_func
def add_tiles(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 1024), threads=128) as bx:
        a = T.alloc_shared((1024,), "float32")
        b = T.alloc_shared((1024,), "float32")
        c = T.alloc_fragment((1024,), "float32")
        T.copy(A[bx * 1024], a)
        T.copy(B[bx * 1024], b)
        for i in T.Parallel(1024):
            c[i] = a[i] + b[i]
        T.copy(c, C[bx * 1024])


@T.prim_func
def gemm(A: T.Tensor((M, M), "float16"), B: T.Tensor((M, M), "float16"), C: T.Tensor((M, M), "float16")):
    with T.Kernel(8, 8, threads=128) as (bx, by):
        a = T.alloc_shared((128, 64), "float16")
        b = T.alloc_shared((64, 128), "float16")
        c = T.alloc_fragment((128, 128), "float32")
        T.clear(c)
        for k in T.Pipelined(16, num_stages=3):
            T.copy(A[by * 128, k * 64], a)
            T.copy(B[k * 64, bx * 128], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 128, bx * 128])


class Torch:
    """torch.mm of 1024³ in float32, timed inside its own process; None when torch is not there."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", TORCH],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __call__(self) -> float | None:
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())
        except (OSError, ValueError):
            return None


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """A call that gives the seconds `work` took."""

    def once() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return once


def row(name: str, ours: Callable[[], float], peer: Callable[[], float | None], goal: str, rounds: int) -> None:
    """One line of the table."""
    ours(), peer()
    pairs = [(ours(), peer()) for _ in range(rounds)]
    mine = statistics.median(p[0] for p in pairs)
    known = [(a, b) for a, b in pairs if b]
    theirs = statistics.median(b for _, b in known) if known else float("nan")
    ratio = statistics.median(a / b for a, b in known) if known else float("nan")
    least = min(p[0] for p in pairs)
    print(f"{name:34} {mine:10.4f} {least:10.4f} {theirs:10.4f} {ratio:8.2f}   {goal}")


def main(rounds: int) -> None:
    """Checks and times the kernels."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, N)).astype(np.float32)
    c = np.empty_like(a)
    print(f"{'kernel':34} {'median s':>10} {'least s':>10} {'peer s':>10} {'ratio':>8}   goal")
    for function in (add, add_tiles):
        c[:] = 0
        run(function.kernel, [a, b, c])
        assert np.array_equal(c, a + b)
        title = f"{function.name} fp32 4 Mi, tiles of 1024"
        row(title, timed(lambda f=function: run(f.kernel, [a, b, c])), timed(lambda: np.add(a, b, out=c)),
            "≤ 10 × np.add", rounds)  # fmt: skip
    x, y = rng.integers(-4, 5, (2, 1024, 1024)).astype(np.float16)
    z = np.empty_like(x)
    run(gemm.kernel, [x, y, z])
    assert np.array_equal(z, (x.astype(np.float32) @ y.astype(np.float32)).astype(np.float16))
    x, y = rng.standard_normal((2, 1024, 1024)).astype(np.float16)
    ours = timed(lambda: run(gemm.kernel, [x, y, z]))
    row("gemm fp16 1024³, 128×128×64", ours, Torch(), "≤ 3 × torch.mm fp32", rounds)
    for causal in (False, True):
        q, k, v = rng.standard_normal((3, 1, 8, 1024, 64)).astype(np.float16)
        o = np.empty((1, 8, 1024, 64), np.float32)
        kernel = attention(1, 8, 1024, 64, 64, 64, causal).kernel
        ours = timed(lambda kernel=kernel, args=(q, k, v, o): run(kernel, args))
        plain = timed(lambda args=(q, k, v), causal=causal: reference(*args, causal))
        row(f"attention 1×8×1024×64{' causal' * causal}", ours, plain, "≤ 1 s (peer: NumPy)", max(rounds // 4, 1))


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    """Attention in plain NumPy, float32."""
    q, k, v = (t.astype(np.float32) for t in (q, k, v))
    s = q @ k.swapaxes(-1, -2) / np.float32(8)
    if causal:
        s = np.where(np.tri(s.shape[-1], dtype=bool), s, np.float32(-np.inf))
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ v


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
