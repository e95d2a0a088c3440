"""The result of a check: the sentence for the card, and a table of its cases."""

from __future__ import annotations

from ..checks.check import Case, Check, fault_text
from .blocks import Block, Table, Text
from .document import Section

PROVEN = {
    "reference": "equal to the reference",
    "meaning": "the machine code does what the text means",
    "runs": "no undefined value and no index out of range; with a reference its values would be compared too",
}


def check_text(check: Check) -> str:
    """A sentence for the card, after its word."""
    if not check.ok:
        return fault_text(check.worst)
    count = f"on {len(check.cases)} inputs ({check.machine})"
    return f"{PROVEN[check.proven]}, {count}, largest error {check.error:.3g}"


def check_section(check: Check) -> Section:
    """Every case with its largest error and its bound."""
    columns = ("inputs", "sizes", "seed", "right", "largest error", "of its bound", "bound")
    rows = tuple(case_row(case) for case in check.cases)
    blocks: list[Block] = [Table(columns, rows, f"Checked by the {check.machine}")]
    if not check.ok:
        blocks.insert(0, Text(fault_text(check.worst), "bad"))
    return Section("check", "Check", tuple(blocks))


def case_row(case: Case) -> tuple[str | float | int | None, ...]:
    """One case of a check."""
    sizes = ", ".join(f"{name}={n}" for name, n in case.sizes.items())
    share = f"{case.share:.0%}" if case.share < 1e6 else "over"
    return case.kind, sizes or "fixed", case.seed, "yes" if case.ok else "no", case.error, share, case.bound
