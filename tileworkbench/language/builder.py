"""The builder: one per function being read, on a stack private to the thread. It holds the open bodies (frames), the
names of each staged call (activations) and what the kernel has so far."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import Loc, TileError
from ..ir.expr import Buffer, Expr, Load, Var
from ..ir.kernel import Assumed
from ..ir.node import children, walk
from ..ir.op import Op
from ..ir.stmt import Let, Stmt, Store
from ..options import options
from .faults import exact, fault, misnested
from .ranges import check_ranges

# Frames whose body runs not at all, or more than once: names bound in them have no single value afterwards.
RUN_TIME = ("for", "while", "parallel", "then", "else", "group")
LOOPS = ("for", "while", "parallel")
MACRO_DEPTH = 64


@dataclass(eq=False)
class Frame:
    """An open body. `kind`: function, kernel, for, while, parallel, then, else, group."""

    kind: str
    loc: Loc | None = None
    loop: str = ""  # kind of the loop, in the user's word
    body: list[Stmt] = field(default_factory=list)
    defined: list[Var | Buffer] = field(default_factory=list)
    bound: dict[str, Any] = field(default_factory=dict)  # names bound here → what they were before
    reads: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Mark:
    """The id of what a body holds from statement `start` on: to `stop`, or one operation."""

    frame: Frame
    name: str
    start: int
    stop: int | None = None


@dataclass(eq=False)
class Activation:
    """One running staged function: the kernel itself, or a macro."""

    name: str
    depth: int  # frames open when it began
    values: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, Load] = field(default_factory=dict)  # names of T.alloc_var and T.Ref → their place
    vectors: dict[str, Any] = field(default_factory=dict)  # names of T.alloc_var of a vector type
    homes: dict[str, Frame] = field(default_factory=dict)  # the frame in which a name was bound
    spoiled: dict[str, str] = field(default_factory=dict)  # names without one value, and why


class Builder:
    """State of one reading. `phase` is 1 while an eager function's signature is read (kernels are skipped), else 2."""

    def __init__(self, name: str, style: str = "lazy", phase: int = 2) -> None:
        self.name, self.style, self.phase = name, style, phase
        self.frames = [Frame("function")]
        self.activations: list[Activation] = []
        self.calls: tuple[Loc, ...] = ()
        self.here: Loc | None = None
        self.hint: str | None = None
        self.names: set[str] = set()
        self.dead: dict[Var | Buffer, str] = {}
        self.lets: dict[Var, Expr] = {}  # lets of index arithmetic: no loads, so their values never change
        self.unset: set[Var] = set()  # made by `T.int32()`, without a value yet
        self.statements = 0
        self.launch: Any = None  # the open T.Kernel
        self.launches: list[Any] = []  # all of them, in order
        self.table: Any = None  # the parameters
        self.params: list[Buffer | Var] = []
        self.empties: list[Buffer] = []
        self.workspaces: list[Buffer] = []
        self.returned: Any = None
        self.return_loc: Loc | None = None
        self.attrs: dict[str, Any] = {}
        self.asserts: list[Assumed] = []  # what holds of every call, whichever kernel says so
        self.reduced: dict[Buffer, Any] = {}  # what T.alloc_reducer made, and the state of each
        self.random: Any = None  # the generator that T.rng_init started in the open T.Kernel
        self.reducers: list[Any] = []  # of the open T.attr blocks
        self.marks: list[Mark] = []  # ids of operations for a role schedule, in open bodies
        self.op_ids: dict[Stmt, str] = {}  # and of the statements that they became
        self.choices: list[Any] = []  # the open T.If blocks

    # -- bodies ------------------------------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @property
    def scope(self) -> Activation:
        return self.activations[-1]

    @property
    def own_frames(self) -> list[Frame]:
        """The bodies that the running function opened itself: a macro's names are no affair of its caller's bodies."""
        return self.frames[self.scope.depth :]

    def emit(self, statement: Stmt, gathers: bool = False) -> None:
        """Appends a statement to the innermost body; operations check their operands first. `gathers`: it is one of
        those that a reducer's updates became."""
        if self.phase == 2 and self.launch is None:
            raise misnested(
                f"{describe(statement)} outside `with T.Kernel(...)`",
                "statements that run on the device stand inside the kernel's `with` block",
                "move it into the block",
                None,
            )
        if isinstance(statement, Op):
            self._check_place(statement)
            check_ranges(statement, self.here)
            try:
                statement.check()
            except TileError as error:
                if error.loc is not None:
                    exact(error)
                raise
        if self.reduced and not gathers:
            self._check_reads(statement)
        self.statements += 1
        if self.statements > options.ir_node_limit:
            raise fault(
                f"the kernel has more than {options.ir_node_limit} statements",
                "a kernel's size is limited by the option `ir_node_limit`",
                "use loops (T.serial, T.unroll) instead of Python recursion, or raise the option",
            )
        self.frame.body.append(statement)

    def _check_place(self, op: Op) -> None:
        if self.within("parallel") is not None and op.name != "Parallel":  # nests of loops are one, or refused there
            raise misnested(
                f"{describe(op)} inside T.Parallel",
                "a parallel loop holds element statements; tile operations are done by the whole block",
                "move it out of the loop, or write its elements",
                None,
            )

    def _check_reads(self, statement: Stmt) -> None:
        """Refuses the use of a reducer whose contributions are not combined yet."""
        if isinstance(statement, Store) and statement.buffer in self.reduced:
            return
        for n in (n for c in children(statement) if not isinstance(c, Stmt) for n in walk(c)):
            if isinstance(n, Buffer) and n in self.reduced and self.reduced[n].partial:
                raise fault(
                    f"illegal read of reducer `{n.name}` before its T.finalize_reducer",
                    "until then every thread holds its own part of the result",
                    f"T.finalize_reducer({n.name}) before it",
                    statement.loc,
                )

    def mark(self, name: str) -> Mark:
        """What is emitted next in the innermost body is the operation `name` of a role schedule."""
        made = Mark(self.frame, name, len(self.frame.body))
        self.marks.append(made)
        return made

    def _settle_marks(self, frame: Frame) -> None:
        """The body is complete: its marks are those of statements."""
        for mark in [m for m in self.marks if m.frame is frame]:
            stop = mark.stop
            if stop is None:  # an operation, after the values that it computes for itself
                after = (i for i, s in enumerate(frame.body[mark.start :], mark.start) if not isinstance(s, Let))
                stop = next(after, len(frame.body) - 1) + 1
            self.op_ids.update(dict.fromkeys(frame.body[mark.start : stop], mark.name))
        self.marks = [m for m in self.marks if m.frame is not frame]

    @contextmanager
    def before_loops(self) -> Iterator[None]:
        """What is emitted comes before the outermost open loop of the kernel, so that it happens once."""
        frames, at = self.frames, self._outermost_loop()
        self.frames = frames[:at]
        yield
        self.frames = frames

    def _outermost_loop(self) -> int:
        parallel = next((i for i, f in enumerate(self.frames) if f.kind == "parallel"), len(self.frames))
        loops = (i for i, f in enumerate(self.frames[:parallel]) if f.kind in ("for", "while"))
        return len(self.frames) if parallel < len(self.frames) else next(loops, len(self.frames))

    def define(self, what: Var | Buffer) -> None:
        self.frame.defined.append(what)

    @contextmanager
    def inside(self, kind: str, loop: str = "") -> Iterator[Frame]:
        """Opens a frame; at its end what it defined is dead, and names it rebound are spoiled."""
        frame = Frame(kind, self.here, loop)
        self.frames.append(frame)
        yield frame
        self.frames.pop()
        if self.marks:
            self._settle_marks(frame)
        word = {"then": "`if` branch", "else": "`else` branch"}.get(kind, "loop" if kind in LOOPS else "block")
        for what in frame.defined:
            self.dead[what] = word
            if isinstance(what, Var):
                self.names.discard(what.name)
        if kind in RUN_TIME:
            self._spoil(frame, word)

    def _spoil(self, frame: Frame, word: str) -> None:
        scope = self.scope
        missing = object()
        for name, before in frame.bound.items():
            now = scope.values.get(name, missing)
            if before is now or (kindred(before) and kindred(now) and before == now):
                continue
            if before is not UNSET or frame.kind in ("then", "else"):
                scope.spoiled[name] = f"a {word} decided at run time, at line {frame.loc.line if frame.loc else '?'}"
            # The frame around it sees a rebinding too.
            if self.own_frames and self.frames[-1] is not scope.homes.get(name):
                self.frames[-1].bound.setdefault(name, before)

    def within(self, *kinds: str) -> Frame | None:
        """The innermost open frame of one of these kinds, in this activation or its callers."""
        return next((f for f in reversed(self.frames) if f.kind in kinds), None)

    # -- names and places --------------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """`name`, or `name_1`, `name_2` … when it is taken by something alive."""
        made, number = name, 0
        while made in self.names:
            number += 1
            made = f"{name}_{number}"
        self.names.add(made)
        return made

    def take_hint(self, otherwise: str) -> str:
        """The name the user is about to give to a new tile."""
        name, self.hint = self.hint or otherwise, None
        return self.unique(name)

    def at(self, span: Loc) -> Loc:
        """A span as a node's place: with the macro calls that led here."""
        return replace(span, calls=self.calls) if self.calls else span

    @contextmanager
    def activate(self, name: str) -> Iterator[Activation]:
        """Runs a staged function: its own names, and its call site in the places of what it builds."""
        if len(self.activations) > MACRO_DEPTH:
            raise fault(
                f"`{name}` calls itself more than {MACRO_DEPTH} levels deep",
                "a macro's recursion ends by a condition known while compiling",
                "test a Python value (an int argument) before the recursive call",
            )
        calls, here = self.calls, self.here
        if self.activations and here is not None:
            self.calls = (*calls, replace(here, calls=()))
        scope = Activation(name, len(self.frames))
        self.activations.append(scope)
        yield scope
        self.activations.pop()
        self.calls, self.here = calls, here


UNSET: Any = type("Unset", (), {"__repr__": lambda self: "(unset)"})()


def kindred(value: Any) -> bool:
    """Plain Python values that can be compared without building an expression."""
    return isinstance(value, int | float | str | bool | tuple | type(None)) and not isinstance(value, Expr)


def describe(statement: Stmt) -> str:
    """A statement in the user's words: the name that was called, else the kind of statement."""
    text = statement.loc.source_line()[statement.loc.col :] if statement.loc is not None else ""
    called = re.match(r"[\w.]+(?=\()", text)
    if called:
        return f"`{called[0]}`"
    return f"T.{statement.name}" if isinstance(statement, Op) else f"a {type(statement).__name__.lower()} statement"


class _Stack(threading.local):
    def __init__(self) -> None:
        self.builders: list[Builder] = []


_STACK = _Stack()


def current() -> Builder | None:
    """The innermost builder of this thread, or None outside any reading."""
    return _STACK.builders[-1] if _STACK.builders else None


def require(what: str) -> Builder:
    """The active builder; LanguageError when `what` is used outside a kernel's text."""
    builder = current()
    if builder is None:
        raise fault(f"{what} outside a kernel", "it stands in the text of a kernel or macro", "call it in a kernel")
    return builder


@contextmanager
def reading(builder: Builder) -> Iterator[Builder]:
    """Makes `builder` the innermost one of this thread."""
    _STACK.builders.append(builder)
    try:
        yield builder
    finally:
        _STACK.builders.pop()
