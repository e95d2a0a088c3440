"""Asks every op how it can be done on this target, and keeps the ranked answers beside the kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import TargetError
from ..ir.arith import Facts
from ..ir.expr import Buffer, Const
from ..ir.kernel import Kernel
from ..ir.node import Node, children, walk
from ..ir.op import Access, Choice, Op, Refusal
from ..ir.stmt import For, If, Let
from ..ops.warpgroup import WarpGroups
from ..target import LARGEST_GRID, Target
from .facts import after_let, inside_loop, kernel_facts
from .grid import meets
from .own_writes import after_writes
from .tiles import agree

Choices = Mapping[Op, Choice]


def ops_with_facts(body: Any, facts: Facts, warps: int, lanes: int) -> Iterator[tuple[Op, Facts, int]]:
    """Every op below `body` with what is known where it stands, and the warps that run it."""
    if isinstance(body, tuple):
        for s in body:
            yield from ops_with_facts(s, facts, warps, lanes)
            if isinstance(s, Let):
                facts = after_let(facts, s)
    elif isinstance(body, WarpGroups):
        yield from ops_with_facts(body.body, facts, max(1, body.unit * len(body.groups) // lanes), lanes)
    elif isinstance(body, Op):
        yield body, facts, warps
    elif isinstance(body, For):
        yield from ops_with_facts(body.body, inside_loop(facts, body), warps, lanes)
    elif isinstance(body, If):
        yield from ops_with_facts(body.then, facts, warps, lanes)
        yield from ops_with_facts(body.orelse, facts, warps, lanes)
    elif isinstance(body, Node):
        for child in children(body):
            yield from ops_with_facts(child, facts, warps, lanes)


def check_ops(kernel: Kernel, target: Target) -> Kernel:
    """Every op's own rules, and the launch's, before any rewrite blurs the lines."""
    if math.prod(kernel.cluster) > 1 and target.dialect != "cpu" and not target.has("cluster"):
        raise TargetError(
            f"clusters of {math.prod(kernel.cluster)} blocks",
            rule=f"{target.name} has no clusters",
            fix="use T.Kernel, or compile for sm_90 or later",
            loc=kernel.launch_loc,
        )
    for op in (n for n in walk(kernel.body) if isinstance(n, Op)):
        op.check()
    large = _large_grid(kernel) if target.dialect != "cpu" else ()
    return kernel.with_(notes=(*kernel.notes, *large)) if large else kernel


def _large_grid(kernel: Kernel) -> tuple[str, ...]:
    """What the plan says of a constant grid that no launch can have: the kernel may be read and analysed, its call is
    refused."""
    return tuple(
        f"the grid has {extent} blocks in {axis}, and a launch at most {most} there: put the longest dimension first"
        for axis, extent, most in zip("xyz", kernel.grid, LARGEST_GRID, strict=False)
        if isinstance(extent, int) and extent > most
    )


def allowed(choice: Choice, off: Mapping[str, str]) -> Choice:
    """The choice without the implementations that a setting turned off ({start of a name: setting}); what an op can be
    done by alone stays."""
    refused = tuple(
        Refusal(impl.name, f"{setting} turned it off")
        for impl in choice.impls
        for name, setting in off.items()
        if impl.name.startswith(name)
    )
    left = tuple(impl for impl in choice.impls if not any(r.name == impl.name for r in refused))
    return Choice(left, (*choice.refused, *refused)) if refused and left else choice


def defined_outside(op: Op, choice: Choice, values: Mapping[Buffer, Const]) -> Choice:
    """The choice without the implementations that give 0 where the kernel wants another value; TargetError when no
    other one is left."""
    wrong = [i for i in choice.impls if i.zeros is not None and getattr(values.get(i.zeros), "value", 0) != 0]
    if not wrong:
        return choice
    refused = tuple(Refusal(i.name, f"outside of `{i.zeros.name}` it reads 0") for i in wrong if i.zeros is not None)
    left = tuple(i for i in choice.impls if i not in wrong)
    if not left:
        raise TargetError(
            f"T.{op.name} by {wrong[0].name} may leave a tensor whose safe value is not 0",
            rule="the copy engine reads 0 there",
            fix="use T.copy without asking for an instruction, or keep the copy inside the tensor",
            loc=op.loc,
        )
    return Choice(left, (*choice.refused, *refused))


def unwritten(op: Op, choice: Choice, written: Mapping[Op, Access]) -> Choice:
    """The choice without the copy engine where the kernel may have written what it touches before; TargetError when a
    load has no other implementation."""
    access = written.get(op)
    early = tuple(i for i in choice.impls if i.engine == "tma" and i.completion != "manual") if access else ()
    left = tuple(i for i in choice.impls if i not in early)
    if access is None or not early or not (left or access.mode == "r"):
        return choice
    name = access.buffer.name
    if not left:
        raise TargetError(
            f"T.{op.name} by {early[0].name} reads `{name}`, which the kernel writes before",
            rule="the copy engine does not see a block's ordinary stores in the order of its statements",
            fix="use T.copy without asking for an instruction",
            loc=op.loc,
        )
    refused = tuple(Refusal(i.name, f"the kernel may write `{name}` before, by ordinary stores") for i in early)
    return Choice(left, (*choice.refused, *refused))


def select(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with `attrs["choices"]`: op → ranked implementations and refusals."""
    warps = -(-kernel.threads // target.arch.warp_size)
    facts = kernel_facts(kernel, target)
    off = dict(kernel.attrs.get("without", ()))
    outside = kernel.attrs.get("safe_values", {})
    # Where the grid meets, a fence lets the copy engine see what was stored before.
    written = {} if meets(kernel) else after_writes(kernel.body)
    choices: dict[Op, Choice] = {
        op: unwritten(op, allowed(defined_outside(op, op.impls(known, target, width), outside), off), written)
        for op, known, width in ops_with_facts(kernel.body, facts, warps, target.arch.warp_size)
    }
    made = agree(tuple(choices), choices, kernel.attrs.get("layouts", {}))
    return kernel.with_(attrs={**kernel.attrs, "choices": made})
