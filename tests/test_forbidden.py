"""Calls that turn data into code or markup stand nowhere in the repository but in the places named here."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN = {
    "markup from text": r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment",
    "code from text": r"(?<![\w.])eval\(|new Function\b|setTimeout\(\s*['\"`]",
    "objects from bytes": (
        r"\b(?:import|from) (?:pickle|marshal|shelve|dill|cloudpickle)\b|\bpickle\.|\bmarshal\.|yaml\.load\b|"
        r"allow_pickle=True"
    ),
    "a shell": r"os\.system\b|os\.popen\b|shell=True",
    "a predictable or open file": r"tempfile\.mktemp\b|0o?777\b",
}
# File → what it may hold, and why.
MAY = {
    # The rules themselves.
    "tests/test_forbidden.py": set(FORBIDDEN),
    # Annotations of the user's own function, while its cell runs: Python itself would evaluate them.
    "tileworkbench/language/parameters.py": {"code from text"},
    # What the user wrote after --check, in the user's own namespace, as part of running the cell.
    "tileworkbench/magics/cell.py": {"code from text"},
    # The printed form of an expression is checked against Python's meaning of the same text.
    "tests/ir/test_text.py": {"code from text"},
    # That our errors survive the round trip on which process pools send them.
    "tests/test_errors.py": {"objects from bytes"},
    # Folders that the cache must refuse.
    "tests/runtime/test_cache.py": {"a predictable or open file"},
}
KINDS = {".py", ".js", ".ts", ".json", ".toml", ".md", ".ipynb", ".sh", ".yml", ""}


def files() -> list[Path]:
    """Tracked and new files, not what is built or fetched."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return [ROOT / name for name in sorted(filter(None, listed)) if Path(name).suffix in KINDS]


def found(text: str) -> dict[str, list[int]]:
    """What is forbidden in a text, with the lines."""
    lines = text.splitlines()
    return {
        what: hits
        for what, pattern in FORBIDDEN.items()
        if (hits := [i for i, line in enumerate(lines, 1) if re.search(pattern, line)])
    }


def test_no_file_turns_data_into_code_or_markup() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there is no list of the project's own files")
    wrong = []
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        wrong += [f"{name}: {what}, lines {at}" for what, at in found(text).items() if what not in MAY.get(name, set())]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "el.innerHTML = text",
        "eval(code)",
        "const f = new Function('x', body)",
        "import pickle",
        "subprocess.run(line, shell=True)",
        "os.system(line)",
        "yaml.load(text)",
        "tempfile.mktemp()",
    ],
)
def test_each_rule_finds_what_it_is_for(line: str) -> None:
    assert found(line)


@pytest.mark.parametrize(
    "line", ["self.evaluate(x)", "literal_eval(text)", "node.eval(env)", "no pickles", "new Functional()"]
)
def test_the_rules_leave_other_names_alone(line: str) -> None:
    assert not found(line)
