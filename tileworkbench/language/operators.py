"""The stage, operators: arithmetic, comparisons, truth, and operands that are evaluated only when needed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..ir.expr import Buffer, Const, Expr, Load, binary, compare, logical, logical_not, select, unary
from ..ir.fold import SYMBOLS
from ..ir.stmt import Region
from .builder import current
from .faults import fault
from .lanes import Lanes, lanewise
from .regions import element
from .values import BLOCK, Values, describe_value

PYTHON: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "pow": operator.pow,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "matmul": operator.matmul,
    "pos": operator.pos,
    "neg": operator.neg,
    "invert": operator.invert,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "is": operator.is_,
    "is_not": operator.is_not,
    "in": lambda a, b: a in b,
    "not_in": lambda a, b: a not in b,
}


class Operators(Values):
    """Python values stay Python; one tile operand makes an expression."""

    def scalar(self, k: int, value: Any, op: str, word: str = "") -> Any:
        """An operand: variables are read, single elements loaded; a whole tile is refused."""
        if isinstance(value, Buffer) and value.space == "var":
            return element(value, self.loc(k))
        if isinstance(value, Region) and all(isinstance(e, int) and e == 1 for e in value.extents):
            return Load(value.buffer, value.starts, loc=self.loc(k))
        if isinstance(value, BLOCK):
            raise fault(
                f"`{word or SYMBOLS.get(op, op)}` on {describe_value(value)}",
                "operators work on elements, tile operations on tiles",
                "write the elements in a `for i, j in T.Parallel(...)` loop",
                self.loc(k),
            )
        return value

    def binary(self, k: int, op: str, a: Any, b: Any) -> Any:
        vectors = isinstance(a, Lanes) or isinstance(b, Lanes)
        if not vectors and not isinstance(a, Expr | BLOCK) and not isinstance(b, Expr | BLOCK):
            return PYTHON[op](a, b)
        a, b = self.scalar(k, a, op), self.scalar(k, b, op)
        if op == "matmul":
            raise fault(
                "`@` on tile values", "matrix products are a tile operation", "use T.gemm(A, B, C)", self.loc(k)
            )
        if vectors:
            return lanewise(op, a, b)
        return self.placed(k, binary(op, a, b), a, b)

    def unary(self, k: int, op: str, a: Any) -> Any:
        if not isinstance(a, Expr | BLOCK):
            return PYTHON[op](a)
        a = self.scalar(k, a, op)
        if op == "pos":
            return a
        if op == "invert" and a.dtype.is_float:
            raise fault(
                f"`~` on {a.dtype}",
                "bit and integer-division operators take integers",
                "T.cast(x, 'int32')",
                self.loc(k),
            )
        return self.placed(k, ~a if op == "invert" else unary(op, a), a)

    def compare(self, k: int, op: str, a: Any, b: Any) -> Any:
        if op not in ("is", "is_not") and (isinstance(a, Lanes) or isinstance(b, Lanes)):
            raise fault(
                f"`{SYMBOLS.get(op, op)}` on a vector", "comparisons are of single values", "take a lane: `v[0]`",
                self.loc(k),
            )  # fmt: skip
        if not isinstance(a, Expr | BLOCK) and not isinstance(b, Expr | BLOCK):
            return PYTHON[op](a, b)
        if op in ("is", "is_not"):
            return PYTHON[op](a, b)
        if isinstance(a, BLOCK) and isinstance(b, BLOCK) and op in ("eq", "ne"):
            return PYTHON[op](a, b)  # the same tile or not
        a, b = self.scalar(k, a, op), self.scalar(k, b, op)
        if op in ("in", "not_in"):
            raise self.undecided(k, f"`{SYMBOLS.get(op, op)}`")
        if not isinstance(a, Expr | int | float) or not isinstance(b, Expr | int | float):
            return PYTHON[op](a, b)
        return self.placed(k, compare(op, a, b), a, b)

    def chain(self, k: int, ops: tuple[str, ...], first: Any, *rest: Callable[[], Any]) -> Any:
        """`a < b < c`: each operand evaluated once, later ones only as Python would."""
        made: Any = True
        left = first
        for op, delayed in zip(ops, rest, strict=True):
            right = self.pure(k, delayed, "a comparison")
            test = self.compare(k, op, left, right)
            if not isinstance(test, Expr) and not isinstance(made, Expr):
                if not test:
                    return test
                made = test
            else:
                made = logical("land", made, test)
            left = right
        return self.placed(k, made)

    def logical(self, k: int, op: str, first: Any, *rest: Callable[[], Any]) -> Any:
        made = self.truth_operand(k, first, op)
        for delayed in rest:
            if not isinstance(made, Expr) or isinstance(made, Const):
                value = made.value if isinstance(made, Const) else made
                if bool(value) == (op == "lor"):
                    return made
                made = self.truth_operand(k, delayed(), op)
            else:
                made = self.placed(k, logical(op, made, self.truth_operand(k, self.pure(k, delayed, op), op)), made)
        return made

    def truth_operand(self, k: int, value: Any, op: str) -> Any:
        word = {"land": "and", "lor": "or"}.get(op, op)
        return self.scalar(k, value, op, word) if isinstance(value, BLOCK) else value

    def negate(self, k: int, value: Any) -> Any:
        value = self.truth_operand(k, value, "not")
        return self.placed(k, logical_not(value), value) if isinstance(value, Expr) else not value

    def choose(self, k: int, cond: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
        cond = self.truth_operand(k, cond, "if")
        if isinstance(cond, Const):
            cond = cond.value
        if not isinstance(cond, Expr):
            return a() if cond else b()
        x = self.scalar(k, self.pure(k, a, "a conditional expression"), "if else")
        y = self.scalar(k, self.pure(k, b, "a conditional expression"), "if else")
        return self.placed(k, select(cond, x, y), x, y)

    def pure(self, k: int, delayed: Callable[[], Any], where: str) -> Any:
        """A delayed operand, which may not build statements: they would run whatever the condition says."""
        builder = current()
        before = builder.statements if builder is not None else 0
        value = delayed()
        if builder is not None and builder.statements != before:
            raise fault(
                f"a macro or tile operation inside {where}",
                "an operand that may be skipped is an expression without statements",
                "use an `if` statement",
                self.loc(k),
            )
        return value
