"""A kernel compiled for the tile machine: closures for its expressions and bodies, made once per kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InternalError, Loc, NotSimulated, SimulationError
from ...ir.expr import Call, Expr, Load, Var
from ...ir.kernel import Kernel
from ...ir.node import walk
from ...ir.op import Op
from ...ir.stmt import Alloc, Assert, Break, Continue, Eval, For, If, Let, Print, Region, Stmt, Store, While
from ...ops.atomic_element import AtomicElement
from ...ops.branches import orders_itself
from ...ops.descriptor_product import DescriptorProduct
from ...ops.extern import ExternCall
from ...ops.matrix_element import MatrixLoad, MatrixProduct
from ...ops.parallel import Parallel
from ...ops.selections import with_selections
from ...ops.source_kernel import SourceKernel
from . import atomic, clusters, control, descriptor_product, intrinsics, matrix_element, roles, statement, taint
from .control import Body, Step, sequence
from .expression import compile_expression
from .matmul import Products
from .regions import RegionPlan, plan_region
from .rings import Waiting
from .state import State, simple
from .views import roots

_PLAIN: dict[type, Callable[..., Callable[[State], Any]]] = {
    Store: statement.compile_store,
    Let: statement.compile_let,
    Alloc: statement.compile_alloc,
    Eval: statement.compile_eval,
    Assert: statement.compile_assert,
    Print: statement.compile_print,
    Break: control.compile_exit,
    Continue: control.compile_exit,
    AtomicElement: atomic.compile_atomic,
    MatrixLoad: matrix_element.compile_load,
    MatrixProduct: matrix_element.compile_product,
    DescriptorProduct: descriptor_product.compile_product,
    **roles.PLAIN,
}
_WAITING: dict[type, Callable[..., Body]] = {
    For: control.compile_for,
    While: control.compile_while,
    If: control.compile_if,
    **roles.WAITING,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One tile operation of a chunk of blocks. `block` is the first of them, slowest axis first; times in seconds."""

    op: str
    loc: Loc | None
    role: str
    block: tuple[int, ...]
    start: float
    end: float


class Program:
    """`run` executes the kernel's body for one agent. Expressions are compiled per depth of open T.Parallel axes.

    It holds no reference to the kernel, so that it lives only as long as the kernel does."""

    def __init__(self, kernel: Kernel) -> None:
        self.depths: dict[Var, int] = {}
        self.products = Products()
        self.thread_vars = kernel.thread_vars
        self.threads = kernel.threads
        self.block_vars, self.cluster = kernel.block_vars, kernel.cluster
        self.views = roots(kernel)
        self.layouts = dict(kernel.attrs.get("layouts", {}))
        self.printed: Callable[[str], None] = print
        self._expressions: dict[tuple[Expr, int], Callable[[State], Any]] = {}
        self._taints: dict[tuple[Expr, int], Callable[[State], Any]] = {}
        self._regions: dict[Region, RegionPlan] = {}
        self._parallel: dict[Any, Body] = {}
        # Branches on the thread index wait for one another where the kernel has barriers: they are agents.
        agents = kernel.level == "tile" and len(kernel.thread_shape) == 1 and orders_itself(kernel)
        self.run = self.body((with_selections(kernel) if agents else kernel).body, 0)

    def expression(self, e: Any, depth: int) -> Callable[[State], Any]:
        """The closure of an expression (or an int) inside `depth` open T.Parallel axes."""
        if isinstance(e, int):
            return lambda st: e
        key = (e, depth)
        found = self._expressions.get(key)
        if found is None:
            found = self._expressions[key] = compile_expression(e, depth, self)
        return found

    def taint(self, e: Expr, depth: int) -> Callable[[State], Any]:
        """Where the value of `e` was never written (None: nowhere)."""
        key = (e, depth)
        found = self._taints.get(key)
        if found is None:
            plain = not any(isinstance(n, (Load, Var)) for n in walk(e))
            found = self._taints[key] = _nothing if plain else taint.compile_taint(e, depth, self)
        return found

    def intrinsic(self, e: Call, depth: int) -> Callable[[State], Any] | None:
        return intrinsics.compile_value(e, depth, self)

    def effect(self, e: Expr, depth: int) -> Callable[[State], None] | None:
        return intrinsics.compile_effect(e, depth, self)

    def region(self, region: Region) -> RegionPlan:
        """The prepared form of a region."""
        found = self._regions.get(region)
        if found is None:
            found = self._regions[region] = plan_region(region, self)
        return found

    def body(self, stmts: tuple[Stmt, ...], depth: int) -> Body:
        return sequence([self._step(group, depth) for group in roles.grouped(stmts)])

    def parallel_body(self, op: Parallel) -> Body:
        """The compiled body of a T.Parallel."""
        found = self._parallel.get(op)
        if found is None:
            raise InternalError("a T.Parallel was not compiled", loc=op.loc)
        return found

    def operation(self, s: Op, depth: int) -> Callable[[State], None]:
        """Runs a tile operation."""
        s = s.element_loop() or s
        if isinstance(s, Parallel):
            _order_is_open(s)
            inner = depth + len(s.vars)
            self.depths.update(dict.fromkeys(s.vars, inner))
            self._parallel[s] = self.body(s.body, inner)
        return lambda st: s.run(st.env)

    def _step(self, group: list[Stmt], depth: int) -> Step:
        s = group[0]
        if isinstance(s, roles.AGENTS):
            return Step(roles.compile_agents(group, depth, self), True, False, s)
        exits = isinstance(s, (Break, Continue)) or (isinstance(s, If) and control.has_exit((s,)))
        waiting = _WAITING.get(type(s))
        if waiting is not None:
            return Step(waiting(s, depth, self), True, exits, s)
        if isinstance(s, Eval) and isinstance(s.value, Call) and s.value.fn in ("sync_threads", "named_barrier_arrive"):
            return Step(roles.compile_named_barrier(s.value, self), True, False, s)
        if isinstance(s, Eval) and isinstance(s.value, Call) and s.value.fn in clusters.MEETINGS:
            return Step(clusters.compile_meeting(s.value, self), True, False, s)
        if isinstance(s, Op):
            return self._operation_step(s, depth)
        if isinstance(s, SourceKernel):
            raise NotSimulated(
                f"T.CUDASourceCodeKernel of `{s.entry}`",
                rule="the CPU target has no meaning for device functions in source text",
                fix="run it on a GPU, or write the kernel with T.Kernel",
                loc=s.loc,
            )
        if isinstance(s, ExternCall):
            raise NotSimulated(
                f"T.call_extern of `{s.function}`",
                rule="the CPU target has no meaning for device functions in source text",
                fix="run it on a GPU, or write the function as a T.macro",
                loc=s.loc,
            )
        if isinstance(s, Alloc) and s.buffer.attr("address") is not None:
            raise NotSimulated(
                f"`{s.buffer.name}` stands at an address from a table",
                rule="the CPU target reaches tensors that are passed, not addresses",
                fix="run it on a GPU, or pass the tensors themselves",
                loc=s.loc,
            )
        plain = _PLAIN.get(type(s))
        if plain is None:
            raise InternalError(f"{type(s).__name__} has no meaning on the tile machine", loc=s.loc)
        return Step(plain(s, depth, self), False, exits, s)

    def _operation_step(self, s: Op, depth: int) -> Step:
        run = _together(self.operation(s, depth), s)
        ready: Callable[[Any], str | None] | None = getattr(s, "waits_for", None)

        def note(st: State) -> None:
            st.ring.loc = s.loc
            if st.events is None:
                run(st)
                return
            start = time.perf_counter()
            run(st)
            st.events.append(Event(s.name, s.loc, st.ring.role, st.origin, start, time.perf_counter()))

        def wait(st: State) -> Iterator[Any]:
            while (what := ready(st.env)) is not None:  # type: ignore[misc]
                yield Waiting(what, s.loc)
            run(st)

        return Step(note, False, False, s) if ready is None else Step(wait, True, False, s)


def _together(run: Callable[[State], None], s: Op) -> Callable[[State], None]:
    """A tile operation belongs to the block: threads that take part do so as one. Arrivals on barriers are counted."""
    if hasattr(s, "bar"):
        return run

    def collective(st: State) -> None:
        mask = st.mask
        if not isinstance(mask, np.ndarray) or mask.shape[-1] == 1:
            run(st)
            return
        st.mask = simple(mask.any(axis=-1, keepdims=True))
        try:
            run(st)
        finally:
            st.mask = mask

    return collective


def _nothing(st: State) -> None:
    return None


def _order_is_open(loop: Parallel) -> None:
    """Refuses state that a thread carries from one of its iterations to the next: iterations have no threads here."""
    carried = next((n for n in walk(loop.body) if isinstance(n, Store) and n.buffer.attr("sequential")), None)
    if carried is not None:
        raise SimulationError(
            "random numbers drawn in T.Parallel",
            rule="which of them an iteration gets depends on the thread that runs it, and tiles have no threads",
            fix='simulate it with level="thread"',
            loc=carried.loc,
        )
