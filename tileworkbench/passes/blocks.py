"""How many threads a block has: whole warps work together, but what each thread does by itself is done by as many
threads as the kernel asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..errors import TargetError
from ..ir.kernel import Kernel
from ..ir.node import Node, children, walk
from ..ir.op import Choice, ElementStmt, Op
from ..ir.stmt import Assert, Eval, Print, Stmt, Store
from ..ops.barrier import OnBarrier
from ..ops.parallel import Parallel


def launched_threads(kernel: Kernel, choices: Mapping[Op, Choice], lanes: int) -> int:
    """Whole warps; exactly the kernel's threads where each does something by itself, since no other thread may then
    exist."""
    whole = -(-kernel.threads // lanes) * lanes
    if whole == kernel.threads:
        return whole
    together = next((op for op, c in choices.items() if c.impls[0].scope in ("warp", "warpgroup")), None)
    numbered, each = _numbered(kernel), frozenset(_by_each_thread(kernel.body))
    if together is not None and (numbered or each - {Store}):
        raise TargetError(
            f"T.{together.name} in a block of {kernel.threads} threads of which each does something by itself",
            rule=f"it needs whole warps of {lanes} threads",
            fix=f"use threads={whole} and guard the code on thread indices",
            loc=together.loc,
        )
    return kernel.threads if together is None and (numbered or each) else whole


def counts_threads(kernel: Kernel) -> bool:
    """Whether a thread more than the kernel asks for would show."""
    return _numbered(kernel) or any(_by_each_thread(kernel.body))


def _numbered(kernel: Kernel) -> bool:
    return not set(kernel.thread_vars).isdisjoint(walk(kernel.body))


def _by_each_thread(body: Iterable[Node]) -> Iterator[type[Stmt]]:
    """Kinds of the statements by which every thread changes memory or does what can be seen."""
    for s in body:
        if isinstance(s, Store) and s.buffer.space in ("global", "shared"):
            yield Store
        elif isinstance(s, (ElementStmt, Print, Eval, Assert, OnBarrier)):
            yield type(s)
        elif isinstance(s, Stmt) and not isinstance(s, (Store, Parallel)):
            yield from _by_each_thread(children(s))
