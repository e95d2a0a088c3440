"""Runs TileLang's public example scripts, or its tests, on this package: each in a process of its own under the alias.

    python -m tests.conformance.run --checkout PATH                    the listed example scripts
    python -m tests.conformance.run --checkout PATH --only core        those of one set, or paths that contain a word
    python -m tests.conformance.run --checkout PATH --tests language   test files of testing/python/language
    python -m tests.conformance.run --checkout PATH --tests issue --textless    without what they assert on source text
    python -m tests.conformance.run --checkout PATH --plain            the same scripts on the installed TileLang

One JSON line a script (or test) goes to --out, a summary to standard output. A script counts when its own check passes:
it ends with status 0. Without a checkout there is nothing to run, which is said and is no failure."""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .textless import copy

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("examples.list")
FUNCTIONS = Path(__file__).with_name("behaviour.list")
TAIL = 4000  # characters of output kept with a failure
MILLISECONDS = re.compile(r"(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*ms\b")
# The last line of a traceback: the error's name, then what it says.
RAISED = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Exit|Mismatch|Interrupt|Name|Warning))\b:?\s*(.*)")


@dataclass(frozen=True)
class Job:
    """One process: `name` as it is reported, `group` its set, `file` what it runs."""

    name: str
    group: str
    file: Path
    pytest: bool = False


@dataclass
class Outcome:
    """`status` is passed, failed, timeout or missing; `error` and `message` the exception that ended it; `printed_ms`
    the milliseconds that the script itself printed, in order; `kernels` as tests.conformance.timed gives them."""

    name: str
    group: str
    status: str
    seconds: float
    error: str = ""
    message: str = ""
    rule: str = ""
    printed_ms: list[float] = field(default_factory=list)
    kernels: dict[str, list[float]] = field(default_factory=dict)
    tail: str = ""


def listed(checkout: Path, only: list[str], listing: Path) -> list[Job]:
    """The example scripts: lines "set path", sets and paths chosen by `only`."""
    rows = [line.split() for line in listing.read_text(encoding="utf-8").splitlines() if line.strip()]
    chosen = [(group, name) for group, name in rows if not only or any(o == group or o in name for o in only)]
    return [Job(name, group, checkout / "examples" / name) for group, name in chosen]


def test_files(checkout: Path, folders: list[str]) -> list[Job]:
    """The test files of folders (or single files) below testing/python."""
    base = checkout / "testing" / "python"
    found: list[Path] = []
    for folder in folders:
        place = base / folder
        found += [place] if place.is_file() else sorted(place.rglob("test_*.py"))
    return [Job(str(f.relative_to(base)), str(f.relative_to(base).parts[0]), f, pytest=True) for f in found]


def command(job: Job, plain: bool, records: Path, times: Path | None) -> list[str]:
    if job.pytest:
        # Names begin at the checkout, and its own configuration is read, wherever the checkout lies.
        root = next(folder.parent for folder in job.file.parents if folder.name == "testing")
        options = ["-q", "-p", "no:cacheprovider", "-p", "tests.conformance.plugin", f"--rootdir={root}"]
        if any((folder / "conftest.py").is_file() for folder in job.file.parents[1:3]):
            options.append("--run-perf")  # the checkout's own option: its tests of timing are left out without it
        run = ["pytest", *options, "--conformance-out", str(records), "--conformance-group", job.group, str(job.file)]
        return [sys.executable, "-m", *run]
    if times is not None:
        run = ["-m", "tests.conformance.timed", "--times", str(times), *["--plain"] * plain, str(job.file)]
        return [sys.executable, *run]
    runner = [] if plain else ["-m", "tileworkbench.compat"]
    return [sys.executable, *runner, str(job.file)]


def run(job: Job, limit: float, plain: bool, records: Path, timed: bool = False) -> Outcome:
    """One job; its whole process group ends with the time limit. `timed`: with the times of its kernels."""
    if not job.file.is_file():
        return Outcome(job.name, job.group, "missing", 0.0)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    environment["TILEWORKBENCH_CONFORMANCE_PLAIN"] = "1" if plain else ""
    times = Path(tempfile.mkdtemp()) / "times.json" if timed else None
    start = time.perf_counter()
    process = subprocess.Popen(
        command(job, plain, records, times), cwd=job.file.parent, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=limit)
        status = "passed" if process.returncode == 0 else "failed"
        if job.pytest and process.returncode == 5:  # nothing collected
            status = "passed"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        status = "timeout"
    outcome = Outcome(job.name, job.group, status, round(time.perf_counter() - start, 3))
    if times is not None and times.is_file():
        outcome.kernels = json.loads(times.read_text(encoding="utf-8"))
    outcome.printed_ms = [float(value) for value in MILLISECONDS.findall(output)]
    if status != "passed":
        outcome.error, outcome.message, outcome.rule = ending(output)
        outcome.tail = output[-TAIL:]
    return outcome


def ending(output: str) -> tuple[str, str, str]:
    """(error, message, rule) of the last exception in an output."""
    lines = output.splitlines()
    for number in range(len(lines) - 1, -1, -1):
        found = RAISED.match(lines[number])
        if found:
            rules = [line.strip() for line in lines[number + 1 :] if line.startswith("  rule: ")]
            return found[1], found[2][:300], rules[0].removeprefix("rule: ") if rules else ""
    return "", lines[-1][:300] if lines else "", ""


def out_of_memory(outcome: Outcome) -> bool:
    """Whether the card had no memory left, in the words of torch, the driver or cuBLAS."""
    said = ("CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED")
    return outcome.error == "OutOfMemoryError" or any(word in outcome.message for word in said)


def all_run(jobs: list[Job], alone: list[str], workers: int, act: Callable[[Job], Outcome]) -> Iterator[Outcome]:
    """Outcomes as they come. Jobs whose names hold a word of `alone` run last, one at a time, and so do once more those
    that found no memory on the card beside others."""
    single = [job for job in jobs if any(word in job.name for word in alone)]
    with ThreadPoolExecutor(workers) as pool:
        together = {pool.submit(act, job): job for job in jobs if job not in single}
        for done in as_completed(together):
            if workers > 1 and out_of_memory(done.result()):
                single.append(together[done])
            else:
                yield done.result()
    yield from map(act, single)


def summary(outcomes: list[Outcome]) -> str:
    """Counts by set and by reason, and the whole time."""
    lines = []
    for group in dict.fromkeys(o.group for o in outcomes):
        counts = collections.Counter(o.status for o in outcomes if o.group == group)
        total = sum(counts.values())
        rest = ", ".join(f"{n} {status}" for status, n in sorted(counts.items()) if status != "passed")
        lines.append(f"{group}: {counts['passed']} of {total} passed" + (f" ({rest})" if rest else ""))
    reasons = collections.Counter(
        f"{o.error}: {o.rule or o.message}"[:140] for o in outcomes if o.status not in ("passed", "missing")
    )
    lines += [f"  {count:3}  {reason}" for reason, count in reasons.most_common(40)]
    lines.append(f"{sum(o.seconds for o in outcomes):.1f} s in {len(outcomes)} processes")
    return "\n".join(lines)


def tests_summary(records: Path) -> str:
    """Counts of single tests by folder, from the lines that the plugin wrote."""
    counts: dict[str, collections.Counter[str]] = {}
    for line in records.read_text(encoding="utf-8").splitlines() if records.is_file() else ():
        record = json.loads(line)
        counts.setdefault(record["group"], collections.Counter())[record["status"]] += 1
    return "\n".join(
        f"{group}: " + ", ".join(f"{n} {status}" for status, n in sorted(found.items()))
        for group, found in sorted(counts.items())
    )


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file, none of no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def listed_functions(listing: Path = FUNCTIONS) -> dict[str, list[str]]:
    """The test functions of each set: lines "set file::function"."""
    found: dict[str, list[str]] = {}
    for line in filter(str.strip, listing.read_text(encoding="utf-8").splitlines()):
        group, name = line.split()
        found.setdefault(group, []).append(name)
    return found


def function_statuses(records: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Test function → what its cases did."""
    statuses: dict[str, set[str]] = {}
    for record in records:
        file, _, function = record["name"].partition("::")
        function = function.split("[")[0].rpartition("::")[2]
        statuses.setdefault(f"{file.rpartition('testing/python/')[2]}::{function}", set()).add(record["status"])
    return statuses


def passes(statuses: set[str]) -> bool:
    """None of a function's cases fails and at least one runs: its own gates may skip the others."""
    return "passed" in statuses and statuses <= {"passed", "skipped"}


def functions_summary(records: Path, listing: Path) -> str:
    """Of the listed test functions how many passed, by set, and which did not."""
    statuses = function_statuses(read_lines(records))
    lines = []
    for group, names in listed_functions(listing).items():
        passed = [name for name in names if passes(statuses.get(name, set()))]
        lines.append(f"{group}: {len(passed)} of {len(names)} listed functions passed")
        lines += [f"  not {name}" for name in names if name not in passed and name in statuses]
        files = {name.partition("::")[0] for name in names if name not in statuses}
        lines += [f"  not run: {file}" for file in sorted(files)]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, default=os.environ.get("TILELANG_CHECKOUT"), help="TileLang's sources")
    parser.add_argument("--only", nargs="*", default=[], help="sets, or parts of paths")
    parser.add_argument("--tests", nargs="*", help="folders or files below testing/python")
    parser.add_argument("--textless", action="store_true", help="tests without assertions on generated source text")
    parser.add_argument("--list", type=Path, default=LIST, help="lines of: set path")
    parser.add_argument("--limit", type=float, default=200.0, help="seconds a process")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once; 1 where times matter")
    parser.add_argument("--alone", nargs="*", default=[], help="parts of paths that run last, one at a time")
    parser.add_argument("--timed", nargs="*", default=[], help="sets whose kernels are timed on the card")
    parser.add_argument("--plain", action="store_true", help="on the TileLang that is installed, without the alias")
    parser.add_argument("--out", type=Path, default=Path("conformance.jsonl"))
    given = parser.parse_args(arguments)
    if given.checkout is None or not Path(given.checkout).is_dir():
        print("skipped: no checkout of TileLang is given (--checkout PATH, or TILELANG_CHECKOUT)")
        return 0
    checkout = Path(given.checkout).resolve()
    records = given.out.with_suffix(".tests.jsonl").resolve()
    outcomes = []

    def act(job: Job) -> Outcome:
        return run(job, given.limit, given.plain, records, job.group in given.timed)

    records.unlink(missing_ok=True)
    with given.out.open("w", encoding="utf-8") as out, tempfile.TemporaryDirectory() as place:
        if given.textless and given.tests is not None:
            checkout = copy(checkout, given.tests, Path(place))
        jobs = listed(checkout, given.only, given.list) if given.tests is None else test_files(checkout, given.tests)
        for outcome in all_run(jobs, given.alone, given.jobs, act):
            outcomes.append(outcome)
            out.write(json.dumps(asdict(outcome)) + "\n")
            out.flush()
            said = f"  {outcome.error}: {outcome.rule or outcome.message}"[:150] if outcome.error else ""
            print(f"{outcome.status:8} {outcome.seconds:7.1f} s  {outcome.name}{said}", flush=True)
    print(summary(outcomes))
    if given.tests is not None:
        print(tests_summary(records))
        print(functions_summary(records, FUNCTIONS))
    return 0 if all(o.status == "passed" for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
