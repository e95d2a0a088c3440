"""A pytest plugin: tests that import TileLang run on this package, and each outcome becomes a JSON line.

python -m pytest -p tests.conformance.plugin --conformance-out results.jsonl CHECKOUT/testing/python/language"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tileworkbench.compat import alias_tilelang

# Before any test module is imported. The same lines can be had of TileLang itself, for comparison.
if not os.environ.get("TILEWORKBENCH_CONFORMANCE_PLAIN"):
    alias_tilelang()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--conformance-out", default="", help="the file that JSON lines are added to")
    parser.addoption("--conformance-group", default="", help="what the lines are counted under")


class Recorder:
    """Writes one line a test: what its call did, or the set-up that failed or skipped it."""

    def __init__(self, path: Path, group: str) -> None:
        self.path, self.group = path, group

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
            self.write(report.nodeid, report.outcome, report.duration, reason(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome == "failed":
            self.write(report.nodeid, "uncollected", 0.0, reason(report))

    def write(self, name: str, status: str, seconds: float, why: str) -> None:
        record = {"name": name, "group": self.group, "status": status}
        with self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps({**record, "seconds": round(seconds, 3), "reason": why}) + "\n")


def reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The last line of what went wrong, shortly."""
    if report.outcome == "passed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return text.strip()[:600]


# The checkout's project file declares these; it is not read where another project's folder holds the checkout.
MARKERS = ("perf: tests of timing, left out unless asked for", "slow: long-running sweeps")


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    path = config.getoption("--conformance-out")
    if path:
        config.pluginmanager.register(
            Recorder(Path(path), config.getoption("--conformance-group")), "conformance-recorder"
        )
