"""`python -m tests.fuzz.card --count N --seed S`: random kernels on an NVIDIA card against their own references.

Each seed is built for the card's instruction families and, on the same card, for those of sm_80. Kernels run in worker
processes: a fault on the card costs one worker, and the seed that it had in hand is reported.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import signal
import sys
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from .grow import generate
from .oracle import VARIANTS, Verdict, compared, lowered

TARGETS = ("sm_90a", "sm_80/H200")
SEED_SECONDS = 60.0  # longer than that is a hang


def on_card(seed: int) -> list[Verdict]:
    """One seed's verdicts, a variant of its stages and threads included."""
    from tileworkbench.codegen.emit import emit
    from tileworkbench.runtime import nvrtc
    from tileworkbench.runtime.launch import Launcher
    from tileworkbench.target import Target

    from .oracle import variants

    program = generate(seed)
    wanted = program.expected()
    out: list[Verdict] = []
    for name in TARGETS:
        goal = Target.of(name)
        for which, text in ((program, ""), (variants(program, seed % VARIANTS), ", variant")):
            kernel = lowered(which, goal, checked=False)
            if isinstance(kernel, Verdict):
                out.append(kernel)
                continue

            def act(args: list[Any], kernel: Any = kernel, goal: Any = goal, start: int = which.start) -> None:
                source = emit(kernel, goal)
                launcher = Launcher([(source, nvrtc.build(source))])
                if not start:  # the launcher's own copies
                    launcher(*args)
                    return
                there = [moved(a, start) if isinstance(a, np.ndarray) else a for a in args]
                launcher(*there)
                for a, t in zip(args, there, strict=True):
                    if isinstance(a, np.ndarray):
                        a[...] = back(t, a)

            out.append(compared(f"{name}{text}", which, wanted, act))
    return out


def moved(array: np.ndarray, start: int, device: str = "cuda") -> Any:
    """A torch tensor that begins `start` elements behind where its memory does."""
    import torch

    before = start * array.itemsize
    room = torch.full((before + array.nbytes,), 0xA5, dtype=torch.uint8, device=device)
    room[before:] = torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()).to(device)
    return room[before:].view(getattr(torch, array.dtype.name)).view(array.shape)


def back(tensor: Any, like: np.ndarray) -> np.ndarray:
    """Its values in a NumPy array's type."""
    import torch

    return tensor.contiguous().view(-1).view(torch.uint8).cpu().numpy().view(like.dtype).reshape(like.shape)


def worker(pipe: Connection) -> None:
    """Seeds come in, verdicts go out, until None comes."""
    while (seed := pipe.recv()) is not None:
        pipe.send([(v.kind, v.where, v.text) for v in on_card(seed)])


class Worker:
    """A process with a context of its own on the card."""

    def __init__(self) -> None:
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=worker, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.seed: int | None = None
        self.since = 0.0

    def give(self, seed: int) -> None:
        self.seed, self.since = seed, time.monotonic()
        self.pipe.send(seed)

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.card", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    start = time.monotonic()
    seeds = iter(range(chosen.seed, chosen.seed + chosen.count))
    counts: collections.Counter[str] = collections.Counter()
    bad: list[dict[str, Any]] = []
    workers = [Worker() for _ in range(chosen.workers)]

    def note(seed: int, found: list[tuple[str, str, str]]) -> bool:
        counts["kernels"] += 1
        counts.update(kind for kind, _, _ in found)
        wrong = [{"seed": seed, "kind": k, "where": w, "text": t} for k, w, t in found if k in ("wrong", "fault")]
        bad.extend(wrong)
        return any("CUDA" in w["text"] for w in wrong)

    def feed(one: Worker) -> None:
        one.seed = None
        if time.monotonic() - start < chosen.seconds and (seed := next(seeds, None)) is not None:
            one.give(seed)

    def serve(busy: list[Worker]) -> None:
        ready = wait([w.pipe for w in busy], timeout=1.0)
        for one in busy:
            spoilt = False
            if one.pipe in ready:
                try:
                    spoilt = note(int(one.seed or 0), one.pipe.recv())
                except (EOFError, OSError):
                    spoilt = note(int(one.seed or 0), [("fault", "card", "CUDA: the worker died")])
            elif time.monotonic() - one.since > SEED_SECONDS:
                spoilt = note(int(one.seed or 0), [("fault", "card", "CUDA: no answer; the kernel hangs")])
            else:
                continue
            if spoilt:  # a context that has seen a fault answers nothing any more
                one.end()
                workers[workers.index(one)] = one = Worker()
            feed(one)

    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        for one in workers:
            feed(one)
        while busy := [w for w in workers if w.seed is not None]:
            serve(busy)
    except KeyboardInterrupt:
        print("stopped: what was done by then is told")
    for one in workers:
        one.end()
    record = {"seeds": [chosen.seed, chosen.count], "seconds": round(time.monotonic() - start), **counts, "bad": bad}
    if chosen.json:
        chosen.json.write_text(json.dumps(record, indent=1) + "\n")
    for row in bad[:40]:
        print(f"seed {row['seed']}: {row['kind']} on {row['where']}: {row['text'][:300]}")
    print(dict(counts), f"{record['seconds']} s, {len(bad)} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
