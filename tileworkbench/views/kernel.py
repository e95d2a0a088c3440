"""A compiled kernel as a document: the card's sentence, the figures, and the sections that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..checks.check import Check
from ..errors import TileError
from ..jitkernel.kernel import JITKernel
from .checked import check_section, check_text
from .document import CellSource, Document, Section, Verdict
from .plan import plan_section
from .steps import steps_section
from .summary import summary_section
from .texts import ptx_section, sass_section, source_section

SECTIONS: dict[str, Callable[[JITKernel], Section]] = {
    "plan": plan_section,
    "ir": steps_section,
    "cuda": source_section,
    "ptx": ptx_section,
    "sass": sass_section,
}
DEFAULT = ("plan", "ir", "cuda")


def kernel_document(
    kernel: JITKernel,
    check: Check | None = None,
    *,
    show: Sequence[str] = DEFAULT,
    cell: CellSource | None = None,
    more: Sequence[Section] = (),
) -> Document:
    """`show` names the sections of `SECTIONS`; `more` (a benchmark) stands after the check. Reads, never compiles."""
    sections = [summary_section(kernel, check)]
    sections += [check_section(check)] if check is not None else []
    sections += [*more, *(SECTIONS[name](kernel) for name in show)]
    return Document(title(kernel), verdict(kernel, check), tuple(sections), cell)


def title(kernel: JITKernel) -> str:
    return f"{kernel.name}({', '.join(p.name for p in kernel.params)})"


def verdict(kernel: JITKernel, check: Check | None) -> Verdict:
    """The five-second sentence."""
    words = [machine_words(kernel)]
    if check is not None:
        words.insert(0, f"{check_text(check)}.")
    if check is not None and not check.ok:
        return Verdict("wrong", " ".join(words), "bad")
    if kernel.variant is not None and kernel.variant.binary is None:
        return Verdict("not built", " ".join(words), "warn")
    if check is None:
        return Verdict("compiled", " ".join(words), "good")
    return Verdict("runs" if check.proven == "runs" else "right", " ".join(words), "good")


def machine_words(kernel: JITKernel) -> str:
    """What the operations became, and the figures that matter."""
    variant = kernel.variant
    if variant is None:
        return "Runs on the CPU target."
    counts: dict[tuple[str, str], int] = {}
    for d in kernel.plan.decisions:
        key = d.op.split("(")[0], d.chosen
        counts[key] = counts.get(key, 0) + 1
    done = ", ".join(counted(n, op, how) for (op, how), n in counts.items()) or "element code only"
    if variant.binary is None:
        why = variant.missing.found if variant.missing is not None else "the device compiler is missing"
        return f"For {kernel.target}: {done}. No machine code: {why}."
    spill = "no spill" if not variant.binary.spills else f"{variant.binary.spills} bytes spilled"
    return f"For {kernel.target}: {done}; {variant.binary.registers} registers, {spill}{bound_words(kernel)}."


def counted(n: int, op: str, how: str) -> str:
    """For example "3 copies by TMA"."""
    many = {"copy": "copies"}.get(op, f"{op}s")
    return f"{n} {op if n == 1 else many} by {'TMA' if how == 'tma' else how}"


def bound_words(kernel: JITKernel) -> str:
    """The least time, where the sizes are known."""
    if kernel.tile.symbols():
        return ""
    try:
        estimate = kernel.roofline()
    except TileError:
        return ""
    return f"; at least {estimate.us:.3g} µs on {kernel.target.device.name}, {estimate.bound}-bound"
