"""`python -m tests.fuzz --seconds N --seed S [--jobs J]`: random kernels against every oracle until time is up.

Exits with 1 when something failed; each failure is shrunk and printed as a kernel with the seed that gives it."""

from __future__ import annotations

import argparse
import collections
import subprocess
import sys
import time

from .grow import generate
from .oracle import SCHEDULES, TARGETS, VARIANTS, Verdict, judge
from .program import Program
from .shrink import shrink


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    out.add_argument("--seconds", type=float, default=300.0, help="stop after this time")
    out.add_argument("--count", type=int, default=0, help="stop after this many kernels (0: no limit)")
    out.add_argument("--seed", type=int, default=0, help="the first seed; the others follow it")
    out.add_argument("--target", action="append", choices=TARGETS, help="targets to lower for (default: all)")
    out.add_argument("--schedule", action="append", choices=SCHEDULES, help="schedules (default: all)")
    out.add_argument("--in-turn", action="store_true", help="one target a kernel, in turn, and no variant of it")
    out.add_argument("--jobs", type=int, default=1, help="processes, each with every J-th seed")
    out.add_argument("--step", type=int, default=1, help=argparse.SUPPRESS)  # from a seed to the next
    out.add_argument("--tile-only", action="store_true", help="the tile machine alone")
    out.add_argument("--show", action="store_true", help="print each kernel")
    out.add_argument("--keep", action="store_true", help="go on after a kind of failure that was seen before")
    out.add_argument("--no-shrink", action="store_true", help="print failing kernels as they are")
    return out


def first_bad(
    program: Program, targets: tuple[str, ...], schedules: tuple[str, ...], vary: int | None
) -> Verdict | None:
    return next((v for v in judge(program, targets, schedules, vary=vary) if v.bad), None)


def report(
    program: Program, bad: Verdict, targets: tuple[str, ...], schedules: tuple[str, ...], vary: int | None, small: bool
) -> None:
    """Prints a failing seed, shrunk unless told otherwise."""
    wanted = bad.signature()
    narrowed = tuple(t for t in targets if bad.where.startswith(t)) or targets

    def fails(p: Program) -> bool:
        found = first_bad(p, narrowed, schedules, vary)
        return found is not None and found.signature() == wanted

    program = shrink(program, fails) if small else program
    found = first_bad(program, narrowed, schedules, vary) or bad
    print(f"--- seed {program.seed}: {found.kind} on {found.where}\n{found.text}\n{program.text()}", flush=True)


def side_by_side(options: argparse.Namespace, arguments: list[str]) -> int:
    """The same command in several processes, over seeds that interleave."""
    count = [f"--count={-(-options.count // options.jobs)}"] if options.count else []
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz", *arguments, f"--seed={options.seed + n}", f"--step={options.jobs}"]
            + ["--jobs=1", *count]
        )
        for n in range(options.jobs)
    ]
    return max(p.wait() for p in running)


def main() -> int:
    options = parser().parse_args()
    if options.jobs > 1:
        return side_by_side(options, sys.argv[1:])
    return run(options)


def run(options: argparse.Namespace) -> int:
    """Kernels one after another in this process."""
    targets = () if options.tile_only else tuple(options.target or TARGETS)
    schedules = tuple(options.schedule or SCHEDULES)
    start, seed, failed = time.monotonic(), options.seed, 0
    counts: collections.Counter[str] = collections.Counter()
    refusals: collections.Counter[str] = collections.Counter()
    seen: collections.Counter[tuple[str, str]] = collections.Counter()
    done = 0
    while time.monotonic() - start < options.seconds and not (options.count and done >= options.count):
        program = generate(seed)
        if options.show:
            print(f"--- seed {seed}\n{program.text()}")
        vary = seed % VARIANTS if targets and not options.in_turn else None
        chosen = targets[seed % len(targets) :][:1] if targets and options.in_turn else targets
        verdicts = judge(program, chosen, schedules, vary=vary)
        counts.update(v.kind for v in verdicts)
        refusals.update(v.signature()[1] for v in verdicts if v.kind == "refused")
        bad = next((v for v in verdicts if v.bad), None)
        if bad is not None:
            failed += 1
            seen[bad.signature()] += 1
            if seen[bad.signature()] == 1 or options.keep:
                report(
                    program, bad, targets, schedules, vary if "variant" in bad.where else None, not options.no_shrink
                )
            else:
                print(f"--- seed {seed}: again {bad.signature()}", flush=True)
        seed, done = seed + options.step, done + 1
    print(f"{done} kernels from seed {options.seed}: {failed} failed; comparisons: {dict(counts)}")
    for words, n in refusals.most_common():
        print(f"  refused {n} times: {words}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
