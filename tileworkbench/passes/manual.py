"""Kernels that control the hardware themselves: their warpgroups become roles inside the one role, in the order they
were written; their plain loads are complete when they end."""

from __future__ import annotations

from dataclasses import replace as replace_choice

from ..errors import LanguageError, ResourceError, TargetError
from ..ir.kernel import Kernel
from ..ir.node import Node, map_children, map_items, walk
from ..ir.op import Choice, Op
from ..ir.planned import Role
from ..ir.stmt import Stmt
from ..ops.warpgroup import SetMaxRegisters, WarpGroups
from ..target import Target


def manual_op(kernel: Kernel) -> Op | None:
    """A statement by which the kernel controls the hardware itself."""
    return next((n for n in walk(kernel.body) if isinstance(n, Op) and n.manual), None)


def selected(kernel: Kernel, target: Target) -> Kernel:
    """Kernels that control the hardware themselves: their warpgroups as roles inside the one role, their plain loads
    complete when they end."""
    own = manual_op(kernel)
    if own is None:
        return kernel
    choices = {op: _at_once(op, choice) for op, choice in kernel.attrs["choices"].items()}
    body = map_items(kernel.body, lambda s: _as_roles(s, target.arch.warp_size))
    return kernel.with_(body=body, attrs={**kernel.attrs, "choices": choices})


def fit_registers(kernel: Kernel, target: Target) -> None:
    """What the kernel's warpgroups ask for is what a multiprocessor has."""
    asked = {(r.first_warp, r.warps): r.registers for r in walk(kernel.body) if isinstance(r, Role) and r.registers}
    total = sum(count * warps * target.arch.warp_size for (_, warps), count in asked.items())
    if total > target.arch.registers_per_sm:
        raise ResourceError(
            f"T.set_max_nreg: the warpgroups ask for {total} registers",
            rule=f"a multiprocessor of {target.name} has {target.arch.registers_per_sm}",
            fix="give the consumers fewer registers, for example 160 with three of them",
            loc=next(n.loc for n in walk(kernel.body) if isinstance(n, SetMaxRegisters)),
        )


def _at_once(op: Op, choice: Choice) -> Choice:
    """Without the implementations that a channel must wait for."""
    left = tuple(i for i in choice.impls if i.completion != "bytes")
    if not left:
        raise TargetError(
            f"T.{op.name} by {choice.impls[0].name} in a kernel that controls the hardware itself",
            rule="such a kernel waits for its own loads, on its own barriers",
            fix="use T.tma_copy(..., barrier=bar[i]) and wait for the barrier",
            loc=op.loc,
        )
    return replace_choice(choice, impls=left)


def _as_roles(n: Node, lanes: int) -> Node:
    if isinstance(n, WarpGroups):
        first, last = min(n.groups), max(n.groups)
        if len(n.groups) != last - first + 1:
            raise LanguageError(
                f"T.ws{n.groups}", rule="selected warpgroups stand side by side", fix="T.ws(0, 1)", loc=n.loc
            )
        if any(isinstance(m, WarpGroups) for m in walk(n.body)):
            raise LanguageError(
                "T.ws inside T.ws", rule="a selection of warpgroups is not divided again", fix="select once", loc=n.loc
            )
        counts = [m.count for m in walk(n.body) if isinstance(m, SetMaxRegisters)]
        name = "groups_" + "_".join(map(str, n.groups))
        warps = n.unit // lanes
        return Role(
            name, first * warps, len(n.groups) * warps, n.body, counts[-1] if counts else None, n.after, loc=n.loc
        )
    return map_children(n, lambda c: _as_roles(c, lanes) if isinstance(c, Stmt) else c)
