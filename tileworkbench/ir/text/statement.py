"""Statements of all three levels as lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import Loc
from ..expr import Buffer, Const
from ..instr import Elect, Instr
from ..node import Node
from ..planned import Acquire, Commit, Complete, Issue, Release, Role, Turn, Wait
from ..stmt import Alloc, Assert, Break, Continue, Eval, For, If, Let, Print, Stmt, Store, While
from .expression import ExprText, element
from .fields import call, instruction, snake
from .line import Line
from .names import Names

_LOOPS = {
    "serial": "T.serial",
    "unroll": "T.unroll",
    "vector": "T.vectorized",
    "pipelined": "T.Pipelined",
    "persistent": "T.Persistent",
}


class Writer:
    """Collects the lines of statements. `versions` are the ring depths of shared buffers, noted where they are made."""

    def __init__(self, names: Names, versions: Mapping[Buffer, int] | None = None) -> None:
        self.show = ExprText(names)
        self.lines: list[Line] = []
        self.depth = 0
        self.versions = versions or {}

    def line(self, text: str, node: Node | None = None, loc: Loc | None = None) -> None:
        """One line at the present depth; its place is the statement's."""
        self.lines.append(Line(text, node.loc if loc is None and node is not None else loc, self.depth, node))

    def body(self, statements: tuple[Stmt, ...]) -> None:
        """Statements one step deeper; `pass` when there is none."""
        self.depth += 1
        if not statements:
            self.lines.append(Line("pass", None, self.depth))
        for s in statements:
            self.statement(s)
        self.depth -= 1

    def statement(self, s: Stmt) -> None:
        """Any statement, with what is nested in it."""
        rule = _RULES.get(type(s))
        if rule is not None:
            rule(self, s)
        elif isinstance(s, Instr):
            self.line(instruction(self.show, s), s)
        else:
            self.nested(s, op_text(self.show, s))

    def nested(self, s: Stmt, head: str) -> None:
        """A statement that is only a head, or a head and a body."""
        body = getattr(s, "body", None)
        self.line(head if body is None else f"{head}:", s)
        if body is not None:
            self.body(body)


def op_text(show: ExprText, s: Stmt) -> str:
    """A tile operation on one line; without its body if it has one."""
    text = getattr(s, "text", None)
    if callable(text):
        return str(text(show))
    return call(show, s, f"T.{snake(type(s))}", ("body",))


def _for(w: Writer, s: For) -> None:
    show = w.show
    bounds = [s.stop]
    if not (type(s.start) is Const and s.start.value == 0):
        bounds = [s.start, s.stop]
    step = [] if type(s.step) is Const and s.step.value == 1 else [f"step={show(s.step)}"]
    hints = [f"{key}={show(value)}" for key, value in s.attrs]
    arguments = ", ".join([show.items(bounds), *step, *hints])
    w.line(f"for {show.names(s.var)} in {_LOOPS.get(s.kind) or f'T.{s.kind}'}({arguments}):", s)
    w.body(s.body)


def _if(w: Writer, s: If) -> None:
    word: str = "if"
    while True:
        w.line(f"{word} {w.show(s.cond)}:", s)
        w.body(s.then)
        if len(s.orelse) == 1 and type(s.orelse[0]) is If:
            s, word = s.orelse[0], "elif"
            continue
        if s.orelse:
            w.line("else:", s)
            w.body(s.orelse)
        return


def _while(w: Writer, s: While) -> None:
    w.line(f"while {w.show(s.cond)}:", s)
    w.body(s.body)


def _alloc(w: Writer, s: Alloc) -> None:
    depth = w.versions.get(s.buffer)
    w.line(allocation(w.show, s.buffer) + (f"  # {depth} versions" if depth else ""), s)


def allocation(show: ExprText, b: Buffer) -> str:
    """The statement that makes a buffer, as the user would write it."""
    name, base, of = show.names(b), b.attr("view_of"), f'"{b.dtype.name}"'
    rest = "".join(f", {key}={show(value)}" for key, value in b.attrs if key != "view_of")
    if isinstance(base, Buffer):
        steps = f", strides={show.shape(b.strides)}" if b.strides is not None else ""
        return f"{name} = T.view({show(base)}, {show.shape(b.shape)}, {of}{steps}{rest})"
    if b.space == "var":
        return f"{name} = T.alloc_var({of}{rest})"
    if b.space == "barrier":
        return f"{name} = T.alloc_barrier({show.shape(b.shape)}{rest})"
    return f"{name} = T.alloc_{b.space}({show.shape(b.shape)}, {of}{rest})"


def _store(w: Writer, s: Store) -> None:
    w.line(f"{element(w.show, s.buffer, s.indices)} = {w.show(s.value)}", s)


def _assert(w: Writer, s: Assert) -> None:
    message = f", {w.show(s.message)}" if s.message else ""
    w.line(f"T.device_assert({w.show(s.cond)}{message})", s)


def _role(w: Writer, s: Role) -> None:
    warps = f"warps={s.first_warp}" if s.warps == 1 else f"warps=({s.first_warp}, {s.first_warp + s.warps})"
    registers = "" if s.registers is None else f", registers={s.registers}"
    after = ", after=True" if s.after else ""
    w.line(f"with role({w.show(s.name)}, {warps}{registers}{after}):", s)
    w.body(s.body)


def _elect(w: Writer, s: Elect) -> None:
    w.line(f"with elect({w.show(s.who)}):", s)
    w.body(s.body)


def _issue(w: Writer, s: Issue) -> None:
    pred = "" if s.pred is None else f", pred={w.show(s.pred)}"
    body = getattr(s.op, "body", None)
    if body is None:
        w.line(f"issue({op_text(w.show, s.op)}, {w.show(s.impl.name)}{pred})", s)
    else:
        w.line(f"{op_text(w.show, s.op)}:  # issue, {s.impl.name}{pred}", s)
        w.body(body)


def _complete(w: Writer, s: Complete) -> None:
    pending = f", pending={s.pending}" if s.pending else ""
    w.line(f"complete({op_text(w.show, s.op)}, {w.show(s.impl.name)}{pending})", s)


def _channel(word: str) -> Callable[[Writer, Any], None]:
    def write(w: Writer, s: Any) -> None:
        ahead = getattr(s, "ahead", 0)
        w.line(f"{w.show.names(s.channel)}.{word}({f'ahead={ahead}' if ahead else ''})", s)

    return write


def _turn(w: Writer, s: Turn) -> None:
    rest = "".join(f", {key}={w.show(value)}" for key, value in s.attrs)
    w.line(f"turn({w.show(s.name)}).{s.action}({w.show.items(s.roles)}{rest})", s)


_RULES: dict[type, Callable[[Writer, Any], None]] = {
    For: _for,
    If: _if,
    While: _while,
    Break: lambda w, s: w.line("break", s),
    Continue: lambda w, s: w.line("continue", s),
    Let: lambda w, s: w.line(f"{w.show.names(s.var)} = {w.show(s.value)}", s),
    Alloc: _alloc,
    Store: _store,
    Eval: lambda w, s: w.line(w.show(s.value), s),
    Assert: _assert,
    Print: lambda w, s: w.line(f"T.print({w.show.items(s.parts)})", s),
    Role: _role,
    Elect: _elect,
    Acquire: _channel("acquire"),
    Commit: _channel("commit"),
    Wait: _channel("wait"),
    Release: _channel("release"),
    Issue: _issue,
    Complete: _complete,
    Turn: _turn,
}
