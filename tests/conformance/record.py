"""`python -m tests.conformance.record --ours FILE [--theirs FILE] [--tests FILE …] --run JSON --out FILE`

What runs on a card gave. Joins the lines of the runner (this package's scripts, TileLang's own run of the same, its
tests on this package) into one record: counts, whole times, and for each timed script this package's kernel time over
TileLang's."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .run import function_statuses, listed_functions, passes, read_lines

Row = dict[str, Any]


def ratio(ours: Row, theirs: Row) -> float | None:
    """Shortest launches of the kernels that both sides ran under one name, added up: this package's over TileLang's."""
    common = ours.get("kernels", {}).keys() & theirs.get("kernels", {}).keys()
    if not common or ours["status"] != "passed" or theirs["status"] != "passed":
        return None
    mine, other = (sum(side["kernels"][name][1] for name in common) for side in (ours, theirs))
    return round(mine / other, 3) if other else None


def counted(rows: list[Row], group: str) -> Row:
    """Scripts of a set, and how many passed."""
    chosen = [r for r in rows if r["group"] == group]
    return {"scripts": len(chosen), "passed": sum(r["status"] == "passed" for r in chosen)}


def joined(ours: list[Row], theirs: list[Row]) -> list[Row]:
    """One row a script."""
    other = {r["name"]: r for r in theirs}
    made = []
    for r in sorted(ours, key=lambda r: (r["group"], r["name"])):
        row = {"script": r["name"], "set": r["group"], "status": r["status"], "seconds": r["seconds"]}
        if r["status"] != "passed":
            row["reason"] = f"{r['error']}: {r['rule'] or r['message']}"[:200]
        if r["name"] in other:
            row["tilelang"] = {"status": other[r["name"]]["status"], "seconds": other[r["name"]]["seconds"]}
            row["kernel_ratio"] = ratio(r, other[r["name"]])
        made.append(row)
    return made


def functions(runs: dict[str, list[Row]]) -> Row:
    """Of each set's listed test functions, in that set's own run, how many passed and which did not."""
    found: Row = {}
    for group, names in listed_functions().items():
        if group not in runs:
            continue
        statuses = function_statuses(runs[group])
        bad = [name for name in names if not passes(statuses.get(name, set()))]
        found[group] = {"functions": len(names), "passed": len(names) - len(bad), "not": bad}
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--theirs", type=Path)
    parser.add_argument("--tests", nargs="*", default=[], metavar="SET=FILE", help="the run of each set of tests")
    parser.add_argument("--run", type=json.loads, required=True, help="date, card, driver, versions, limits")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    ours, theirs = read_lines(given.ours), read_lines(given.theirs) if given.theirs else []
    record = {**given.run, "core": counted(ours, "core"), "more": counted(ours, "more")}
    if theirs:
        both = {r["name"] for r in ours} & {r["name"] for r in theirs}
        record["tilelang"] = {"core": counted(theirs, "core"), "more": counted(theirs, "more")}
        record["seconds"] = {
            side: round(sum(r["seconds"] for r in rows if r["name"] in both))
            for side, rows in (("tileworkbench", ours), ("tilelang", theirs))
        }
    if given.tests:
        runs = (part.partition("=") for part in given.tests)
        record["tests"] = functions({group: read_lines(Path(file)) for group, _, file in runs})
    record["rows"] = joined(ours, theirs)
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
