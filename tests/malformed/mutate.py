"""Mutated kernels: a token or a line of a right kernel deleted, doubled, exchanged or replaced. Each mutant either
compiles down to the device's text or is refused by one of our errors; nothing else may come out, and none takes long.

`python -m tests.malformed.mutate --count N --seed S` runs N of them and lists what else came out."""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import linecache
import random
import signal
import textwrap
import time
import tokenize
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests import kernels
from tileworkbench import tutorial
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import InternalError, TileError
from tileworkbench.ir.check import check
from tileworkbench.language.faults import is_staged
from tileworkbench.language.prim import PrimFunc
from tileworkbench.pipeline import run_passes
from tileworkbench.places import PACKAGE
from tileworkbench.target import Target

from . import small

TARGETS = ("sm_90a", "sm_80", "gfx942")
SECONDS = 10
HEAD = "from __future__ import annotations\nfrom typing import Any\nimport numpy as np\n"
HEAD += "import tileworkbench.language as T\n\nLOG2E = 1.4426950408889634\n\n"


@dataclass(frozen=True)
class Seed:
    """The text of a right kernel, whose last line builds it; only lines `first` to `last` (from 0) are mutated."""

    name: str
    text: str
    first: int
    last: int


@dataclass(frozen=True)
class Outcome:
    """What came of a mutant: "compiled", "refused", or the name of what should not be."""

    kind: str
    text: str
    detail: str = ""


def seed(factory: Callable[..., Any], call: str) -> Seed:
    """A factory of `tests` or of the tutorial as a seed: the kernel inside it is what is mutated."""
    source = textwrap.dedent(inspect.getsource(factory))
    text = f"{HEAD}{source}\nkernel = {factory.__name__}({call})\n"
    tree = ast.parse(text)
    inner = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.decorator_list]
    kernel = max(inner, key=lambda n: n.lineno)
    return Seed(f"{factory.__name__}({call})", text, kernel.lineno - 1, (kernel.end_lineno or kernel.lineno) - 1)


def seeds() -> tuple[Seed, ...]:
    """Small kernels of every kind, more of the quick ones."""
    return (
        seed(kernels.add_1d, "1000"),
        seed(kernels.add_2d, "200, 256"),
        seed(kernels.add_2d, "T.dynamic('m'), 256, staged=False"),
        seed(kernels.gemm, "128, 128, 128, 64, 64, 32"),
        seed(kernels.softmax, "64, 128"),
        seed(kernels.reduce, "'sum', 32, 64, 1"),
        seed(tutorial.add, "128, 256"),
        *(seed(factory, "") for factory in small.FACTORIES),
    )


def mutants(number: int, chosen: random.Random) -> Iterator[tuple[Seed, str]]:
    """`number` mutants that are still Python."""
    every = seeds()
    made = 0
    while made < number:
        origin = chosen.choice(every)
        text = mutated(origin, chosen)
        if text != origin.text and parses(text):
            made += 1
            yield origin, text


def mutated(origin: Seed, chosen: random.Random) -> str:
    """The seed's text after one or two changes."""
    lines = origin.text.split("\n")
    inside = lines[origin.first : origin.last + 1]
    for _ in range(chosen.choice((1, 1, 1, 2))):
        inside = chosen.choice((by_token, by_token, by_token, by_line))(inside, chosen)
    return "\n".join([*lines[: origin.first], *inside, *lines[origin.last + 1 :]])


def by_line(lines: list[str], chosen: random.Random) -> list[str]:
    out = list(lines)
    a, b = chosen.randrange(1, len(out)), chosen.randrange(1, len(out))
    how = chosen.choice(("delete", "double", "exchange", "move"))
    if how == "delete":
        del out[a]
    elif how == "double":
        out.insert(b, out[a])
    elif how == "exchange":
        out[a], out[b] = out[b], out[a]
    else:
        out.insert(min(b, len(out) - 1), out.pop(a))
    return out


def by_token(lines: list[str], chosen: random.Random) -> list[str]:
    text = "\n".join(lines)
    try:
        tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.string.strip()]
    except (tokenize.TokenError, IndentationError):
        return lines
    spans = [(offset(lines, *t.start), offset(lines, *t.end)) for t in tokens]
    if len(spans) < 3:
        return lines
    at = chosen.randrange(len(spans) - 1)
    (start, end), (after, last) = spans[at], spans[at + 1]
    other = text[slice(*chosen.choice(spans))]
    how = chosen.choice(("delete", "double", "exchange", "replace", "replace", "replace"))
    if how == "delete":
        made = text[:start] + text[end:]
    elif how == "double":
        made = text[:end] + " " + text[start:end] + text[end:]
    elif how == "exchange":
        made = text[:start] + text[after:last] + text[end:after] + text[start:end] + text[last:]
    else:
        made = text[:start] + other + text[end:]
    return made.split("\n")


def offset(lines: list[str], row: int, column: int) -> int:
    return sum(len(line) + 1 for line in lines[: row - 1]) + column


def parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<mutant>", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


class Late(BaseException):
    """A mutant that takes too long."""


def late(*_: Any) -> None:
    raise Late


def outcome(text: str, number: int) -> Outcome:
    """Compiles a mutant; the target changes from one to the next."""
    name = f"<mutant {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lowered(text, name, Target.of(TARGETS[number % len(TARGETS)]))
        return Outcome("compiled", text)
    except Late:
        return Outcome("slow", text)
    except InternalError as error:
        return Outcome("internal", text, f"{error.found} | {error.rule} | {inside(error)}")
    except TileError as error:
        place = error.place
        if place is None or not error.rule or not error.fix:
            return Outcome("poor", text, f"{error} | {inside(error)}")
        return Outcome("refused", text)
    except Exception as error:
        if outside_kernels(error, name):
            return Outcome("python", text)
        return Outcome(type(error).__name__, text, f"{error} | {inside(error)}")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        del linecache.cache[name]


def lowered(text: str, name: str, target: Target) -> None:
    space: dict[str, Any] = {}
    exec(compile(text, name, "exec"), space)
    kernel = space["kernel"]
    if isinstance(kernel, PrimFunc):
        for tile in kernel.kernels:
            made = run_passes(tile, target)
            check(made, target=target)
            emit(made, target)


def outside_kernels(error: BaseException, name: str) -> bool:
    """Whether it came out of plain Python around the kernel, a default value say, and none of our code was asked."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [f for f in frames if f.f_code.co_filename.startswith(PACKAGE) or is_staged(f.f_code)]
    return not ours and frames[-1].f_code.co_filename == name


def inside(error: BaseException) -> str:
    """The last frames of a traceback, for the report."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return " < ".join(f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno}" for f in reversed(frames))


FINE = ("compiled", "refused", "python")


def run(count: int, number: int) -> tuple[Counter[str], list[tuple[Seed, Outcome]], float]:
    """How often each thing came out, what should not have, and the longest time in seconds."""
    found: Counter[str] = Counter()
    wrong: list[tuple[Seed, Outcome]] = []
    longest = 0.0
    for n, (origin, text) in enumerate(mutants(count, random.Random(number))):
        start = time.perf_counter()
        made = outcome(text, n)
        longest = max(longest, time.perf_counter() - start)
        found[made.kind] += 1
        if made.kind not in FINE:
            wrong.append((origin, made))
    return found, wrong, longest


def difference(origin: Seed, text: str) -> str:
    """The lines of a mutant that its seed does not have."""
    own = origin.text.split("\n")
    return "\n".join(f"    {line}" for line in text.split("\n") if line not in own) or "    (lines moved)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--full", action="store_true", help="print the whole text of what went wrong")
    given = parser.parse_args()
    found, wrong, longest = run(given.count, given.seed)
    for origin, made in wrong:
        print(f"== {made.kind}: {made.detail}\n  {origin.name}")
        print(made.text if given.full else difference(origin, made.text))
    print(f"{given.count} mutants of {len(seeds())} kernels, seed {given.seed}: {dict(found)}; longest {longest:.1f} s")
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
