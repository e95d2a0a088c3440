"""The plan of a kernel: an implementation for every op, why the others were refused, roles, channels, assumptions."""

from __future__ import annotations

from ..ir.kernel import Decision
from ..ir.planned import Channel
from ..jitkernel.kernel import JITKernel, Plan
from .blocks import Block, Cell, Table, Text
from .document import Section


def plan_section(kernel: JITKernel) -> Section:
    """The decisions, then roles, channels, assumptions and notes."""
    plan = kernel.plan
    if kernel.variant is None:
        text = "The CPU target runs the tile program itself: there is no instruction to choose."
        return Section("plan", "Plan", (Text(text),))
    nothing = Text("Element code only: loads, stores and arithmetic of the threads themselves.")
    blocks: list[Block] = [decisions_table(plan) if plan.decisions else nothing]
    if plan.roles:
        blocks.append(roles_table(plan))
    if plan.channels:
        blocks.append(channels_table(plan))
    if plan.assumed:
        blocks.append(Table(("assumed of the arguments (the general variant assumes none)",), rows(plan.assumed)))
    if plan.notes:
        blocks.append(Table(("note",), rows(plan.notes)))
    return Section("plan", "Plan", tuple(blocks))


def decisions_table(plan: Plan) -> Table:
    columns = ("line", "operation", "chosen", "why", "refused")
    return Table(columns, tuple(decision_row(d) for d in plan.decisions), "What each operation became")


def decision_row(d: Decision) -> tuple[str | int | None, ...]:
    refused = "; ".join(f"{name}: {why}" for name, why in d.refused)
    return d.loc.line if d.loc is not None else None, d.op, d.chosen, d.reason, refused or "none"


def roles_table(plan: Plan) -> Table:
    found = tuple((r.name, r.warps, r.registers) for r in plan.roles)
    return Table(("role", "warps", "registers a thread"), found, "Roles of a block's warps")


def channels_table(plan: Plan) -> Table:
    columns = ("channel", "tiles", "versions", "from → to", "bytes a version")
    return Table(columns, tuple(map(channel_row, plan.channels)), "Channels through shared memory")


def channel_row(c: Channel) -> tuple[Cell, ...]:
    tiles = ", ".join(b.name for b in c.buffers)
    return c.name, tiles, c.depth, f"{c.producer} → {', '.join(c.consumers)}", c.bytes or None


def rows(texts: tuple[str, ...]) -> tuple[tuple[str], ...]:
    return tuple((text,) for text in texts)
