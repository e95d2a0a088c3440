"""`python -m tests.fuzz --seconds N --seed S [--target sm_80]`: random kernels against every oracle until time is up.

Exits with 1 when something failed; each failure is shrunk and printed as a kernel with the seed that gives it."""

from __future__ import annotations

import argparse
import collections
import sys
import time

from .grow import generate
from .oracle import SCHEDULES, TARGETS, Verdict, judge
from .program import Program
from .shrink import shrink


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    out.add_argument("--seconds", type=float, default=300.0, help="stop after this time")
    out.add_argument("--count", type=int, default=0, help="stop after this many kernels (0: no limit)")
    out.add_argument("--seed", type=int, default=0, help="the first seed; the others follow it")
    out.add_argument("--target", action="append", choices=TARGETS, help="targets to lower for (default: all)")
    out.add_argument("--schedule", action="append", choices=SCHEDULES, help="schedules (default: all)")
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


def main() -> int:
    options = parser().parse_args()
    targets = () if options.tile_only else tuple(options.target or TARGETS)
    schedules = tuple(options.schedule or SCHEDULES)
    start, seed, failed = time.monotonic(), options.seed, 0
    counts: collections.Counter[str] = collections.Counter()
    refusals: collections.Counter[str] = collections.Counter()
    seen: collections.Counter[tuple[str, str]] = collections.Counter()
    while time.monotonic() - start < options.seconds and not (options.count and seed >= options.seed + options.count):
        program = generate(seed)
        if options.show:
            print(f"--- seed {seed}\n{program.text()}")
        vary = seed % 15 if targets else None
        verdicts = judge(program, targets, schedules, vary=vary)
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
        seed += 1
    print(f"{seed - options.seed} kernels from seed {options.seed}: {failed} failed; comparisons: {dict(counts)}")
    for words, n in refusals.most_common():
        print(f"  refused {n} times: {words}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
