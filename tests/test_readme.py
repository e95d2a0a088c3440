"""The README's two command lines are what newcomers and CI run: one line each, marked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.benchmarks import figures

ROOT = Path(__file__).resolve().parent.parent


def marked(name: str) -> list[str]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- {name} -->\n```sh\n(.*?)```", readme, re.S)
    assert found, f"README.md has no block after <!-- {name} -->"
    return found[1].splitlines()


@pytest.mark.parametrize("name, ending", [("main-job", "tileworkbench demo"), ("tests", "python -m tests")])
def test_one_line_makes_the_environment_and_does_the_job(name: str, ending: str) -> None:
    (line,) = marked(name)
    assert line.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert line.endswith(ending)


def test_ci_reads_the_line_from_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "<!-- tests -->" in script
    assert "python -m tests" not in script


def test_its_figures_are_those_of_the_kept_results() -> None:
    found = figures.PLACE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == figures.section(), "run `python -m tests.benchmarks.figures`"
