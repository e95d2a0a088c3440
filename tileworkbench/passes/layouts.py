"""Layouts: where every fragment and shared tile lives.

Strict constraints come first: the user's annotations, then what matrix instructions and the copy engine need. Then
layouts are propagated along element loops, copies and reductions until nothing changes; what no one determined is
chosen freely for wide accesses, in program order, propagating after each choice. An op that does not find a fragment in
its own registers gets a converted copy of it, through shared memory. At the end every op is tied to one implementation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace as changed
from typing import Any, TypeVar

from ..ir.expr import Buffer
from ..ir.kernel import Decision, Kernel
from ..ir.node import Node, children, map_children, map_items, replace, rewrite, walk
from ..ir.op import Choice, Impl, Op
from ..ir.planned import Complete, Issue, Role
from ..ir.region import root
from ..ir.stmt import Alloc, For, Region, Stmt, whole
from ..layout import SharedLayout, same
from ..ops.copy import Copy
from ..target import Target
from .staging import once
from .tiles import shared_layouts, tie, views_in


def layouts(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with `layouts` for all tiles and Issue/Complete in place of ops."""
    choices: dict[Op, Choice] = dict(kernel.attrs["choices"])
    ops = [n for n in walk(kernel.body) if isinstance(n, Op)]
    width = _widths(kernel, target)
    known: dict[Buffer, Any] = dict(kernel.attrs.get("layouts", {}))
    views = views_in(kernel.body)
    shared_layouts(ops, choices, known)
    _strict(ops, choices, known)
    _propagate(ops, choices, known, width, views)
    for op in ops:
        made = op.infer(choices[op].impls[0], known, width[op], True)
        new = {b: layout for b, layout in made.items() if b not in known}
        if new:
            known.update(new)
            _propagate(ops, choices, known, width, views)
    for buffer in _buffers(kernel.body):
        if buffer.space == "shared" and buffer not in known and root(buffer) is buffer:
            known[buffer] = SharedLayout.row_major(tuple(buffer.shape))
    tie(views, known)
    body = tuple(_bind(role, choices, known, width, target) for role in kernel.body)
    settled = {n.op: n.impl for n in walk(body) if isinstance(n, Issue)}
    decisions = tuple(
        _decision(op, _settled(choices[op], settled.get(op)))
        for op in ops
        if choices[op].refused or choices[op].impls[0].engine != "alu"
    )
    attrs = {k: v for k, v in kernel.attrs.items() if k != "choices"}
    return kernel.with_(body=body, layouts=known, decisions=(*kernel.decisions, *decisions), attrs=attrs)


def _widths(kernel: Kernel, target: Target) -> dict[Op, int]:
    """Threads that run each op: those of the innermost role around it, the user's in the outer ones; whole warps, as
    many as are launched."""
    found: dict[Op, int] = {}
    lanes = target.arch.warp_size

    def visit(n: Node, threads: int) -> None:
        if isinstance(n, Op):
            found[n] = threads
        for c in children(n):
            if isinstance(c, Stmt):
                visit(c, c.warps * lanes if isinstance(c, Role) else threads)

    for role in kernel.body:
        visit(role, min(kernel.launch_threads, -(-kernel.threads // lanes) * lanes))
    return found


def _buffers(body: Any) -> Iterator[Buffer]:
    return (n for n in walk(body) if isinstance(n, Buffer))


def _strict(ops: list[Op], choices: Mapping[Op, Choice], known: dict[Buffer, Any]) -> None:
    for op in ops:
        for buffer, wanted in choices[op].impls[0].layouts.items():
            if buffer.space == "fragment":
                known.setdefault(buffer, wanted[0])


def _propagate(
    ops: list[Op], choices: Mapping[Op, Choice], known: dict[Buffer, Any], width: Mapping[Op, int],
    views: tuple[Buffer, ...],
) -> None:  # fmt: skip
    changed = True
    while changed:
        changed = tie(views, known)
        for op in ops:
            for buffer, layout in op.infer(choices[op].impls[0], known, width[op], False).items():
                if buffer not in known:
                    known[buffer] = layout
                    changed = True


# --- tying ops to implementations -------------------------------------------------------------------------------------
def _bind(
    n: Any, choices: Mapping[Op, Choice], known: dict[Buffer, Any], width: Mapping[Op, int], target: Target
) -> Any:
    if isinstance(n, Op):
        return _issue(n, choices[n].impls[0], known, width[n], target)
    if isinstance(n, Role | Stmt):
        made = map_children(n, lambda c: _bind(c, choices, known, width, target) if isinstance(c, Stmt) else c)
        return once(made) if isinstance(made, For) else made
    return n


def _issue(op: Op, impl: Impl, known: dict[Buffer, Any], threads: int, target: Target) -> tuple[Stmt, ...]:
    before: list[Stmt] = []
    after: list[Stmt] = []
    while misfits := op.misfits(impl, known, threads):  # each swap may change the layout of the op's own loop
        buffer, wanted = misfits[0]
        other = _elsewhere(buffer, wanted, known, op)
        before.append(Alloc(other, loc=op.loc))
        modes = {a.mode for a in op.effects() if a.buffer is buffer}
        if modes != {"w"} or not op.fills(buffer):
            before += _convert(buffer, other, known, op)
        if modes != {"r"}:
            after = [*_convert(other, buffer, known, op), *after]
        op = swap(op, buffer, other)
        impl = _swap_layouts(impl, buffer, other)
    impl = op.settle(impl, known, target, threads)
    asynchronous = impl.completion in ("bytes", "manual")
    done = () if asynchronous else (Complete(op, impl, loc=op.loc),)
    return (*before, Issue(op, impl, loc=op.loc), *done, *after)


def _elsewhere(buffer: Buffer, wanted: Any, known: dict[Buffer, Any], op: Op) -> Buffer:
    """Where the op finds the fragment's elements: in another layout, or in shared memory when no layout serves it."""
    if wanted is None:
        other = Buffer(f"{buffer.name}_for_{op.name}", buffer.shape, buffer.dtype, "shared", loc=op.loc)
        known[other] = _tile_layout(buffer)
        return other
    other = Buffer(f"{buffer.name}_as_{op.name}", buffer.shape, buffer.dtype, "fragment", loc=op.loc)
    known[other] = wanted
    return other


def _tile_layout(buffer: Buffer) -> SharedLayout:
    """Rows padded by 16 bytes, against bank conflicts."""
    return SharedLayout.padded(tuple(buffer.shape), max(1, 16 // buffer.dtype.bytes) if buffer.rank > 1 else 0)


def _convert(src: Buffer, dst: Buffer, known: dict[Buffer, Any], op: Op) -> list[Stmt]:
    """The same elements under another layout, through a shared tile: right for every pair of layouts. Layouts of two
    kinds may put all elements in the same places."""
    if "shared" in (src.space, dst.space) or same(known[src], known[dst]):
        return _move(src, dst, op)
    tile = Buffer(f"{src.name}_through", src.shape, src.dtype, "shared", loc=op.loc)
    known[tile] = _tile_layout(src)
    return [Alloc(tile, loc=op.loc), *_move(src, tile, op), *_move(tile, dst, op)]


def _move(src: Buffer, dst: Buffer, op: Op) -> list[Stmt]:
    impl = Impl("vector", "lsu", detail={"staged": False})
    copy = Copy(whole(src), whole(dst), loc=op.loc)
    return [Issue(copy, impl, loc=op.loc), Complete(copy, impl, loc=op.loc)]


def swap(n: Any, old: Buffer, new: Buffer) -> Any:
    """The node with one buffer for another."""

    def change(m: Node) -> Node:
        if m is old:
            return new
        if isinstance(m, Region) and m.buffer is old:
            return replace(m, buffer=new)
        return m

    return rewrite(n, change)


V = TypeVar("V")


def _swap_layouts(impl: Impl, old: Buffer, new: Buffer) -> Impl:
    def move(d: Mapping[Buffer, V]) -> dict[Buffer, V]:
        return {new if b is old else b: v for b, v in d.items()}

    return changed(impl, layouts=move(impl.layouts), proxies=move(impl.proxies))


def _settled(choice: Choice, impl: Impl | None) -> Choice:
    """The choice with the implementation that layouts led to in front."""
    if impl is None or any(i.name == impl.name for i in choice.impls):
        return choice
    return changed(choice, impls=(impl, *choice.impls))


def _decision(op: Op, choice: Choice) -> Decision:
    best, *others = choice.impls
    refused = [(i.name, f"possible, at an estimated {i.cost:.0f} cycles against {best.cost:.0f}") for i in others]
    refused += [(r.name, r.reason) for r in choice.refused]
    operands = ", ".join(dict.fromkeys(a.buffer.name for a in op.effects()))
    reason = f"cheapest of {len(choice.impls)} that are possible" if others else "the only one that is possible"
    return Decision(f"{op.name}({operands})", best.name, reason, tuple(refused), op.loc)


__all__ = ["layouts", "map_items", "swap"]
