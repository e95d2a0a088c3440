"""The stage, control flow: branches, loops, blocks, return, assert. Python's own `for` drives each of them: it runs the
body once a pass that has to be traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from ..ir.expr import Buffer, Const, Expr, truth
from ..ir.kernel import Assumed
from ..ir.node import replace
from ..ir.stmt import Assert, Break, Continue, If, While
from ..ir.text import show_expr
from .assign import Assignments
from .builder import RUN_TIME, current
from .faults import fault
from .loopbodies import Loop
from .values import BLOCK, builder_of, describe_value

Names = str | tuple[str, ...]


class Control(Assignments):
    """Statements with bodies; each is a generator that yields once for every trace of the body."""

    # -- branches ----------------------------------------------------------------------------------------------------

    def branches(self, k: int, cond: Any) -> Iterator[bool]:
        """Yields True for the `if` body and False for the `else` body: both when the test is a tile value."""
        cond = self.condition(k, cond, "if")
        if not isinstance(cond, Expr):
            yield bool(cond)
            return
        builder, loc = builder_of(), self.loc(k)
        builder.here = loc
        with builder.inside("then") as then:
            yield True
        builder.here = loc
        with builder.inside("else") as orelse:
            yield False
        if then.body or orelse.body:
            builder.emit(If(truth(cond), tuple(then.body), tuple(orelse.body), loc=loc))

    def condition(self, k: int, cond: Any, word: str) -> Any:
        if (isinstance(cond, Buffer) and cond.space == "var") or (isinstance(cond, BLOCK) and is_element(cond)):
            cond = self.scalar(k, cond, word)
        if isinstance(cond, BLOCK) or hasattr(cond, "loop_kind"):
            raise fault(
                f"`{word}` on {describe_value(cond)}",
                "a condition is a scalar",
                "compare an element, or use T.any_of / T.all_of",
                self.loc(k),
            )
        return cond.value if isinstance(cond, Const) else cond

    # -- loops -------------------------------------------------------------------------------------------------------

    def loop(self, k: int, names: Names, what: Any) -> Iterator[Any]:
        """Runs a loop's body once, with its index variables."""
        loc = self.loc(k)
        if not isinstance(what, Loop):
            raise fault(
                f"a `for` over {describe_value(what)}",
                "loops in a kernel run over range, T.serial, T.unroll, T.vectorized, T.Parallel, T.Pipelined, "
                "T.Persistent or T.grid",
                "loop over Python values in a comprehension or a helper function outside the kernel's text",
                loc,
            )
        builder = builder_of()
        builder.here = loc
        count, given = what.count, 1 if isinstance(names, str) else len(names)
        if count != given:
            raise fault(
                f"T.{what.loop_kind} yields {count} index{'es' * (count != 1)}, the loop names {given}",
                "a loop has one target an extent",
                f"write {count} name{'s' * (count != 1)}",
                loc,
            )
        tuple_of_names = (names,) if isinstance(names, str) else names
        for vars in what.run(builder, tuple_of_names, loc, self.keep):
            yield vars[0] if isinstance(names, str) else vars

    def repeat(self, k: int, test: Callable[[], Any]) -> Iterator[None]:
        builder, loc = builder_of(), self.loc(k)
        builder.here = loc
        with builder.inside("while", "while") as frame:
            cond = self.condition(k, self.pure(k, test, "the test of `while`"), "while")
            if not isinstance(cond, Expr):
                if cond:
                    raise fault(
                        "`while` on a test that is always true",
                        "a loop in a kernel ends by a test of run-time values",
                        "use T.serial, or test a T.alloc_var",
                        loc,
                    )
                return
            yield None
        builder.emit(While(truth(cond), tuple(frame.body), loc=loc))

    def leave(self, k: int) -> None:
        self.jump(k, "break")
        builder_of().emit(Break(loc=self.loc(k)))

    def skip(self, k: int) -> None:
        self.jump(k, "continue")
        builder_of().emit(Continue(loc=self.loc(k)))

    def jump(self, k: int, word: str) -> None:
        builder = builder_of()
        frame = builder.within("for", "while", "parallel")
        if frame is None or frame.kind == "parallel" or frame.loop in ("Pipelined", "vectorized"):
            where = f"T.{frame.loop}" if frame is not None else "no loop"
            raise fault(
                f"`{word}` in {where}",
                "break and continue belong to serial, unrolled and while loops",
                "guard the statements with `if`",
                self.loc(k),
            )

    # -- blocks ------------------------------------------------------------------------------------------------------

    def within(self, k: int, names: Names, context: Any) -> Iterator[Any]:
        """`with context as names`: blocks of the language run zero or one time; other contexts as in Python."""
        builder, loc = builder_of(), self.loc(k)
        builder.here = loc
        if hasattr(context, "launch_kind"):
            for value in context.run(builder, names, loc, self.keep):
                yield value
            return
        if not isinstance(context, AbstractContextManager):
            raise fault(
                f"`with` on {describe_value(context)}",
                "`with` opens T.Kernel, T.ws or another context manager",
                "use a plain assignment, or `with T.Kernel(...)`",
                loc,
            )
        with context as value:
            yield value

    # -- the rest ----------------------------------------------------------------------------------------------------

    def ret(self, k: int, value: Any) -> Any:
        builder = current()
        if builder is None:
            return value
        inside = next((f for f in builder.frames[builder.scope.depth :] if f.kind in RUN_TIME), None)
        if inside is not None:
            raise fault(
                "`return` inside a loop or branch decided at run time",
                "a kernel or macro returns at its end, or in a branch decided while compiling",
                "store the result in a T.alloc_var and return at the end",
                self.loc(k),
            )
        if builder.scope is builder.activations[0]:
            builder.return_loc = self.loc(k)
        return value

    def check(self, k: int, cond: Any, message: Callable[[], Any]) -> None:
        """`assert`: a device check on a tile value, a Python assertion on a Python value."""
        cond = self.condition(k, cond, "assert")
        if not isinstance(cond, Expr):
            if not cond:
                raise AssertionError(message())
            return
        builder = builder_of()
        made = Assert(truth(cond), str(message()), loc=self.loc(k))
        if builder.launch is None:
            stated = Assumed(replace(made.cond, loc=made.loc), made.message or f"assert {show_expr(made.cond)}", True)
            builder.asserts.append(stated)
        else:
            builder.emit(made)


def is_element(value: Any) -> bool:
    return not isinstance(value, Buffer) and all(isinstance(e, int) and e == 1 for e in value.extents)
