"""The compiler's passes: time and changed lines of each, and the text of what changed."""

from __future__ import annotations

from ..jitkernel.kernel import JITKernel
from .blocks import Block, Cell, Code, Diff, Table, Text
from .document import Section


def steps_section(kernel: JITKernel) -> Section:
    """The program as it was read, a table of passes, and a diff for each that changed something."""
    trace = kernel.trace
    program = Code("python", first_text(kernel), "The kernel as it was read")
    if not trace:
        return Section("ir", "Steps", (program, Text("The CPU target runs this program without further passes.")))
    blocks: list[Block] = [program]
    found: list[tuple[Cell, ...]] = []
    for step in trace:
        diff = Diff(step.before, step.after, f"{step.name}: {step.reason}") if step.changed else None
        added, removed = counts(diff) if diff is not None else (0, 0)
        found.append((step.name, added, removed, f"{step.seconds * 1e3:.2f}", step.reason))
        if diff is not None:
            blocks.append(diff)
    blocks.insert(1, Table(("pass", "lines added", "lines removed", "ms", "why it stands here"), tuple(found)))
    return Section("ir", "Steps", tuple(blocks))


def first_text(kernel: JITKernel) -> str:
    return next((step.before for step in kernel.trace), kernel.source)


def counts(diff: Diff) -> tuple[int, int]:
    """Lines added and removed."""
    added = removed = 0
    for sign, content in diff.runs:
        if isinstance(content, list):
            added += len(content) if sign == "+" else 0
            removed += len(content) if sign == "-" else 0
    return added, removed
