"""`python -m tests.malformed [-w] [-s] [word…]`: shows what the malformed kernels of matching themes and rules say;
with -w only those that do not say what they should, with -s the others in one line each."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tileworkbench.errors import TileError

from .collection import Case, collection
from .judge import problems
from .ways import WAYS, compile_all


def said(case: Case, folder: Path) -> str:
    """The message, after a line with what it lacks."""
    try:
        compile_all(WAYS["exec"](case.text, folder), case.target)
    except TileError as error:
        return "".join(f"!!! {lack}\n" for lack in problems(case, error)) + str(error)
    except Exception as error:
        return f"!!! {type(error).__name__}: {error}"
    return "!!! accepted"


def main(words: list[str]) -> None:
    wrong = "-w" in words
    short = "-s" in words
    words = [word for word in words if word not in ("-w", "-s")]
    with tempfile.TemporaryDirectory() as folder:
        for case in collection():
            if not words or any(word in str(case) for word in words):
                text = said(case, Path(folder))
                if short and "!!!" not in text:
                    lines = text.split("\n")
                    print(f"{case}: {lines[0]} |{'|'.join(line for line in lines if line[:6] in ('  rule', '  fix:'))}")
                elif not wrong or "!!!" in text:
                    print(f"== {case}\n{text}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
