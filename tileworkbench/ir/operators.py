"""Python's operators on expressions. Each is one call of a construction function, which ir/fold.py puts in its place:
the nodes do not know how they are folded, and folding knows the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..errors import LanguageError, Loc
from .dtype import BOOL, DType

if TYPE_CHECKING:
    from .terms import Expr


class Operators:
    """What makes `a + b` on two expressions an expression."""

    __slots__ = ()
    dtype: DType
    loc: Loc | None
    _binary: ClassVar[staticmethod[[str, Any, Any], Expr]]
    _compare: ClassVar[staticmethod[[str, Any, Any], Expr]]
    _unary: ClassVar[staticmethod[[str, Any], Expr]]
    _logical_not: ClassVar[staticmethod[[Any], Expr]]
    _cast: ClassVar[staticmethod[[Any, DType], Expr]]

    def __add__(self, other: Any) -> Expr:
        return self._binary("add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return self._binary("add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return self._binary("sub", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return self._binary("sub", other, self)

    def __mul__(self, other: Any) -> Expr:
        return self._binary("mul", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return self._binary("mul", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return self._binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return self._binary("div", other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return self._binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return self._binary("floordiv", other, self)

    def __mod__(self, other: Any) -> Expr:
        return self._binary("floormod", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return self._binary("floormod", other, self)

    def __pow__(self, other: Any) -> Expr:
        return self._binary("pow", self, other)

    def __and__(self, other: Any) -> Expr:
        return self._binary("and", self, other)

    def __rand__(self, other: Any) -> Expr:
        return self._binary("and", other, self)

    def __or__(self, other: Any) -> Expr:
        return self._binary("or", self, other)

    def __ror__(self, other: Any) -> Expr:
        return self._binary("or", other, self)

    def __xor__(self, other: Any) -> Expr:
        return self._binary("xor", self, other)

    def __rxor__(self, other: Any) -> Expr:
        return self._binary("xor", other, self)

    def __lshift__(self, other: Any) -> Expr:
        return self._binary("shl", self, other)

    def __rlshift__(self, other: Any) -> Expr:
        return self._binary("shl", other, self)

    def __rshift__(self, other: Any) -> Expr:
        return self._binary("shr", self, other)

    def __rrshift__(self, other: Any) -> Expr:
        return self._binary("shr", other, self)

    def __neg__(self) -> Expr:
        return self._unary("neg", self)

    def __pos__(self) -> Self:
        return self

    def __invert__(self) -> Expr:
        return self._logical_not(self) if self.dtype is BOOL else self._unary("not", self)

    def __abs__(self) -> Expr:
        return self._unary("abs", self)

    def __lt__(self, other: Any) -> Expr:
        return self._compare("lt", self, other)

    def __le__(self, other: Any) -> Expr:
        return self._compare("le", self, other)

    def __gt__(self, other: Any) -> Expr:
        return self._compare("gt", self, other)

    def __ge__(self, other: Any) -> Expr:
        return self._compare("ge", self, other)

    # No truth values: `==` on expressions builds an expression, as every other operator does.
    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return self._compare("eq", self, other) if isinstance(other, (Operators, int, float)) else NotImplemented

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return self._compare("ne", self, other) if isinstance(other, (Operators, int, float)) else NotImplemented

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise LanguageError(
            "a value known only at run time decides Python control flow",
            rule="Python's `if`, `and`, `or`, `not` and `while` outside kernel text need values known while compiling",
            fix="move the test into the kernel's text, or use T.if_then_else",
            loc=self.loc,
        )

    def __index__(self) -> int:
        raise LanguageError(
            "a value known only at run time is used where Python needs an integer",
            rule="Python lists, ranges and shapes need integers known while compiling",
            fix="use a constant, or loop with T.serial",
            loc=self.loc,
        )
