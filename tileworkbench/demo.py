"""The main job of the README: compile the first tutorial's kernels, run them, check them, write a report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import tutorial
from .checks import Check, check
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
        right = right and found.ok
        out.write(summary(card, here, found) + "\n\n")
        documents.append(kernel_document(card, found, show=("plan", "ir", "cuda", "ptx", "sass")))
    write_report(report, documents, "tileworkbench: the first tutorial's kernels")
    out.write(f"report: {report.resolve()}\n")
    return 0 if right else 1


def summary(card: JITKernel, here: JITKernel, found: Check) -> str:
    """One kernel in a terminal: what it became for a card, and what the CPU target says of it."""
    lines = [card.name, "─" * len(card.name)]
    for d in card.plan.decisions:
        lines.append(f"  {d.op} → {d.chosen}")
        lines += [f"      not {name}: {why}" for name, why in d.refused]
    shown = [(name, value) for name, value in facts(card, None)]
    shown += [("on the CPU target", str(found)), ("maximum error", f"{found.error:.3g} ({found.worst.bound})")]
    width = max(len(name) for name, _ in shown)
    lines += [f"  {name:<{width}}  {value}" for name, value in shown]
    return "\n".join(lines)
