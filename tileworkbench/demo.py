"""The main job of the README: compile the first tutorial's kernels, run them, check them, write a report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import tutorial
from .checks import Check, check
from .checks.machines import has_cuda
from .jitkernel import JITKernel, compile
from .views.document import Document
from .views.kernel import kernel_document
from .views.report import write_report
from .views.summary import facts

CARD = "sm_90a"
KERNELS: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (tutorial.add, tutorial.add_reference),
    (tutorial.gemm_relu, tutorial.gemm_relu_reference),
)


def main(report: Path = Path("tileworkbench-demo.html"), out: Any = None) -> int:
    """Prints a summary per kernel and writes the report; 0 when every kernel is right."""
    out = sys.stdout if out is None else out
    documents: list[Document] = []
    right = True
    for factory, reference in KERNELS:
        program = factory()
        here = compile(program, out_idx=[-1], target="cpu")
        card = compile(program, out_idx=[-1], target=CARD)
        found = check(here, reference)
        checks = [found, *([check(compile(program, target="cuda"), reference)] if has_cuda() else [])]
        right = right and all(checks)
        out.write(summary(card, checks) + "\n\n")
        documents.append(kernel_document(card, found, show=("plan", "ir", "cuda", "ptx", "sass")))
    write_report(report, documents, "tileworkbench: the first tutorial's kernels")
    out.write(f"report: {report.resolve()}\n")
    return 0 if right else 1


def summary(card: JITKernel, checks: Sequence[Check]) -> str:
    """One kernel in a terminal: what it became for a card, and whether it is right where it can run."""
    lines = [card.name, "─" * len(card.name)]
    for d in card.plan.decisions:
        lines.append(f"  line {d.loc.line if d.loc else '?'}: {d.op} → {d.chosen} ({d.reason})")
        lines += [f"      not {name}: {why}" for name, why in d.refused]
    shown: list[tuple[str, object]] = list(facts(card, None))
    for found in checks:
        shown.append((f"on the {found.machine}", str(found).partition(" on ")[0]))
        shown.append(("maximum error", f"{found.error:.3g} ({found.worst.share:.0%} of {found.worst.bound})"))
    width = max(len(name) for name, _ in shown)
    lines += [f"  {name:<{width}}  {value}" for name, value in shown]
    return "\n".join(lines)
