"""The stage, values: reads of names, elements and attributes, and calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import LanguageError, Loc, TileError
from ..ir.expr import Binary, Buffer, Const, Expr, Load, Var
from ..ir.node import replace
from ..ir.stmt import Region
from ..places import users_place
from .builder import LOOPS, Builder, current
from .dtypes import dtype as DTypeName
from .faults import fault, nearest, shown
from .lanes import VectorVariable, elements_at, has_ramp
from .parameters import Undeclared, untyped
from .regions import element, index_buffer, scope_name

# Builtins that would need the value of an expression, and what to write instead.
_INSTEAD = {
    min: "T.min",
    max: "T.max",
    int: "T.cast(x, 'int32')",
    float: "T.cast(x, 'float32')",
    bool: "a comparison",
    round: "T.round",
    range: "T.serial in a `for` statement",
}
BLOCK = Region | Buffer


class Values:
    """`spans` holds the numbered places of the function's text."""

    def __init__(self, spans: list[Loc]) -> None:
        self.spans = spans

    def loc(self, k: int) -> Loc:
        builder = current()
        return builder.at(self.spans[k]) if builder is not None else self.spans[k]

    def placed(self, k: int, made: Any, *operands: Any) -> Any:
        """A newly built expression with its own place."""
        if isinstance(made, Expr) and not any(made is o for o in operands):
            return replace(made, loc=self.loc(k))
        return made

    # -- names, attributes, elements ---------------------------------------------------------------------------------

    def read(self, k: int, name: str, value: Any) -> Any:
        builder = current()
        if builder is None or not builder.activations:
            return value
        scope = builder.scope
        kept = value.buffer if isinstance(value, VectorVariable) else value
        if isinstance(kept, Var | Buffer) and kept in builder.dead:
            raise fault(
                f"`{name}` is used after the {builder.dead[kept]} that defined it ended",
                "a value lives to the end of the block in which it was made",
                "define it before the block (T.alloc_var for a scalar), or move the use inside",
                self.loc(k),
            )
        if name in scope.spoiled:
            raise fault(
                f"`{name}` has no single value here: it was set in {scope.spoiled[name]}",
                "a Python name is decided while compiling; a branch or loop taken at run time cannot change it",
                f"make it a variable: `{name} = T.alloc_var(dtype)` before the branch, then assign it",
                self.loc(k),
            )
        for frame in reversed(builder.own_frames):
            if frame is scope.homes.get(name):
                break
            if frame.kind in LOOPS:
                frame.reads.add(name)
        if isinstance(value, Buffer) and value.space == "var":
            return element(value, self.loc(k))
        if isinstance(value, Undeclared):
            raise untyped(value)
        return value.value() if isinstance(value, VectorVariable) else value

    def attribute(self, k: int, owner: Any, name: str) -> Any:
        if isinstance(owner, Region) and name in ("dtype", "scope", "strides"):
            owner = owner.buffer
        if isinstance(owner, Buffer | Expr) and name == "dtype":
            return DTypeName(owner.dtype)
        if isinstance(owner, Buffer):
            if name == "scope":
                return lambda: scope_name(owner)
            if name == "ndim":
                return owner.rank
            if name == "data":
                return owner  # a pointer to a tile is the tile: T.Tensor(shape, dtype, A.data) views it
            if name == "strides":
                return owner.strides or ()
        if isinstance(owner, Region) and name == "shape":
            return owner.extents
        return getattr(owner, name)

    def slice(self, k: int, start: Any, stop: Any, step: Any) -> slice:
        if step is not None and not (isinstance(step, int) and step == 1):
            made = slice(start, stop, step)
            if any(isinstance(part, Expr) for part in (start, stop, step)) or current() is None:
                raise self.strided(k)
            return made
        return slice(start, stop)

    def strided(self, k: int) -> LanguageError:
        return fault(
            "a slice with a step",
            "slices of tiles are contiguous",
            "copy the elements in a T.Parallel loop",
            self.loc(k),
        )

    def item(self, k: int, owner: Any, index: Any) -> Any:
        if isinstance(owner, Buffer) and has_ramp(index):
            return elements_at(owner, index, self.loc(k))
        if isinstance(owner, Buffer):
            return index_buffer(owner, index, self.loc(k))
        if isinstance(owner, Load) and owner.buffer.space == "var":
            return index_buffer(owner.buffer, index, self.loc(k))
        if isinstance(owner, Region):
            raise fault("an index into a slice", "a tile is indexed once", "index the tile itself", self.loc(k))
        if isinstance(owner, Expr):
            raise fault(
                f"an index into {describe_value(owner)}", "tiles and Python containers have elements",
                "name the tile itself", self.loc(k),
            )  # fmt: skip
        made = owner[index]
        return element(made, self.loc(k)) if isinstance(made, Buffer) and made.space == "var" else made

    def sequence(self, k: int, value: Any) -> Any:
        """What a comprehension runs over: a Python iterable, never a tile or a loop of the language."""
        if isinstance(value, BLOCK | Expr) or hasattr(value, "loop_kind"):
            raise fault(
                f"a comprehension over {describe_value(value)}",
                "comprehensions run while compiling, over Python values",
                "use a `for` statement with T.serial or T.Parallel",
                self.loc(k),
            )
        return value

    def decided(self, k: int, value: Any) -> Any:
        if isinstance(value, Expr) and not isinstance(value, Const):
            raise self.undecided(k, "the condition of a comprehension")
        return value

    def undecided(self, k: int, what: str) -> LanguageError:
        return fault(
            f"{what} is known only at run time", "it decides what is built, so it must be known while compiling",
            "use an `if` statement or T.if_then_else", self.loc(k),
        )  # fmt: skip

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(self, k: int, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls anything; what it builds carries this place."""
        builder = current()
        if builder is None:
            return function(*args, **kwargs)
        if isinstance(function, BLOCK | Expr):
            raise fault(
                f"a call of {describe_value(function)}", "elements are named by brackets, functions are called",
                "write `A[i, j]` for an element", self.loc(k),
            )  # fmt: skip
        outer = builder.here
        builder.here = builder.at(self.spans[k])
        try:
            made = function(*args, **kwargs)
        except TileError as error:
            if instead := _INSTEAD.get(function) if isinstance(function, type | type(min)) else None:
                error.fix = f"write {instead}"
            raise
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            wrong = self.wrong_call(k, function, args, kwargs, error) or self.wrong_builtin(k, function, args)
            raise wrong or error from None
        builder.here = outer
        if isinstance(made, Expr) and made.loc is None and not isinstance(made, Var):
            return replace(made, loc=builder.at(self.spans[k]))
        return made

    def wrong_call(self, k: int, function: Any, args: Any, kwargs: Any, error: Exception) -> LanguageError | None:
        """The error for arguments that do not fit a function of the language: its signature, or what it makes of
        them."""
        if not getattr(function, "__module__", "") or not str(function.__module__).startswith(__package__ or ""):
            return None
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return None
        name = getattr(function, "__name__", str(function))
        parameters = {p: q.replace(annotation=q.empty) for p, q in signature.parameters.items()}
        bare = signature.replace(parameters=list(parameters.values()), return_annotation=signature.empty)
        rule = f"the signature is T.{name}{bare}"
        try:
            signature.bind(*args, **kwargs)
        except TypeError as reason:
            unknown = next((key for key in kwargs if key not in parameters), "")
            hint = nearest(unknown, parameters) if unknown else ""
            return fault(f"T.{name}: {reason}", rule, hint or "follow it", self.loc(k))
        if users_place(error.__traceback__) is not None:
            return None  # it came out of a function that the user gave
        given = ", ".join((*map(shown, args), *(f"{key}={shown(value)}" for key, value in kwargs.items())))
        return fault(f"T.{name}({given}): {error}", rule, "give it arguments of the kinds it takes", self.loc(k))

    def wrong_builtin(self, k: int, function: Any, args: Any) -> LanguageError | None:
        """The error for a Python builtin that was given a tile or a tile value."""
        tile = next((a for a in args if isinstance(a, BLOCK | Expr)), None)
        if tile is None or getattr(function, "__module__", "") != "builtins":
            return None
        return fault(
            f"Python's `{function.__name__}` of {describe_value(tile)}",
            "builtins run while compiling, over Python values",
            f"write {_INSTEAD[function]}" if function in _INSTEAD else "use an operation of T, or the tile's shape",
            self.loc(k),
        )

    def iterate(self, k: int, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if function is range:
            function = self.serial
        return self.call(k, function, *args, **kwargs)

    serial: Callable[..., Any]  # T.serial, given by the stage


def describe_value(value: Any) -> str:
    """A value in words, for messages."""
    if isinstance(value, Buffer):
        return f"the whole tile `{value.name}`"
    if isinstance(value, Region):
        return f"a slice of `{value.buffer.name}`"
    if isinstance(value, Binary | Load | Expr):
        return "a value known only at run time"
    return f"a {type(value).__name__}"


def builder_of() -> Builder:
    """The active builder; LanguageError when staged text runs outside a reading."""
    builder = current()
    if builder is None:
        raise fault("kernel text outside a reading", "kernels are read by T.prim_func or jit", "decorate the function")
    return builder
