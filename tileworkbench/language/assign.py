"""The stage, assignments: what `x = e` means depends on what `x` and `e` are.

A tile expression becomes an immutable let, a name made by T.alloc_var is stored to, anything else stays a Python value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ..errors import Loc
from ..ir.expr import Buffer, Call, Const, Expr, Load, Var
from ..ir.node import walk
from ..ir.stmt import Eval, Let, Region, Store
from .boundloops import BlockLoop, ThreadLoop
from .builder import LOOPS, UNSET, Builder, Frame, current
from .dtypes import dtype as DTypeName
from .faults import fault
from .fitted import fitted
from .lanes import Lanes, VectorVariable, alike, elements_at, has_ramp
from .operators import PYTHON, Operators
from .regions import element, index_buffer
from .tensor import TensorType
from .values import BLOCK, builder_of, describe_value


class Assignments(Operators):
    """Targets of `=`, `+=` and `:`."""

    # -- names -------------------------------------------------------------------------------------------------------

    def to(self, k: int, name: str) -> Callable[[Any], Any]:
        """`__tw.to(k, "x")(value)`: says the name first, then binds the value."""
        self.hint(k, name)
        return partial(self.bind, k, name)

    def hint(self, k: int, name: str) -> Callable[[Any], Any]:
        builder = current()
        if builder is not None:
            builder.hint = name
        return _itself

    def bind(self, k: int, name: str, value: Any) -> Any:
        builder = current()
        if builder is None or not builder.activations:
            return value
        builder.hint = None
        scope = builder.scope
        if isinstance(value, BlockLoop | ThreadLoop):
            value = value.index(builder, self.loc(k))
        if isinstance(value, Buffer) and value.space == "var":
            scope.variables[name] = element(value)
            return self.keep(builder, name, value)
        if isinstance(value, VectorVariable):
            scope.vectors[name] = value
            return self.keep(builder, name, value)
        vector = scope.vectors.get(name)
        if vector is not None and vector.buffer not in builder.dead and isinstance(value, Lanes | Expr | int | float):
            self.store_lanes(k, vector, value)
            return scope.values[name]
        scope.vectors.pop(name, None)
        held = scope.variables.get(name)
        if held is not None and held.buffer not in builder.dead:
            if isinstance(value, Expr | int | float) or hasattr(value, "item"):
                builder.emit(Store(held.buffer, held.indices, fitted(value, held.buffer), loc=self.loc(k)))
                return scope.values[name]
            del scope.variables[name]
        if isinstance(value, Region) and all(isinstance(e, int) and e == 1 for e in value.extents):
            value = Load(value.buffer, value.starts, loc=value.loc)
        if isinstance(value, Lanes):
            value = value.mapped(lambda lane: self.let(builder, name, lane, self.loc(k)))
        if isinstance(value, Expr):
            value = self.let(builder, name, value, self.loc(k))
        self.carried(builder, k, name, value)
        return self.keep(builder, name, value)

    def let(self, builder: Builder, name: str, value: Expr, loc: Loc) -> Expr:
        """A let of a computed value; constants and plain names need none, nor do values outside the kernel."""
        if isinstance(value, Const | Var) or builder.launch is None:
            return value
        var = Var(builder.unique(name), dtype=value.dtype, loc=loc)
        builder.emit(Let(var, value, loc=loc))
        builder.define(var)
        if value.dtype.is_int and not any(isinstance(n, Load | Call) for n in walk(value)):
            builder.lets[var] = value
        return var

    def keep(self, builder: Builder, name: str, value: Any) -> Any:
        """Notes which frame a name belongs to, and what it was before."""
        scope, frame = builder.scope, builder.frame
        before = scope.values.get(name, UNSET)
        scope.values[name] = value
        if builder.own_frames and scope.homes.get(name) is not frame:
            frame.bound.setdefault(name, before if name in scope.homes else UNSET)
        if name not in scope.homes or not _open(builder, scope.homes[name]):
            scope.homes[name] = frame
        scope.spoiled.pop(name, None)
        return value

    def carried(self, builder: Builder, k: int, name: str, value: Any) -> None:
        """Refuses a rebinding that would have to be carried into a loop's next iteration."""
        scope = builder.scope
        home = scope.homes.get(name)
        if home is None or scope.values.get(name) is value or name in scope.spoiled:
            return
        for frame in reversed(builder.frames):
            if frame is home:
                return
            if frame.kind in LOOPS and name in frame.reads:
                raise fault(
                    f"`{name}` is read and then rebound in a loop",
                    "a let or a Python value is not carried from one iteration to the next",
                    f"make it a variable before the loop: `{name} = T.alloc_var(dtype, init=...)`",
                    self.loc(k),
                )

    def typed(self, k: int, name: str, annotation: Any, value: Any) -> Any:
        """`x: T.int32 = e`: a let of that dtype; other annotations say nothing."""
        if isinstance(annotation, DTypeName) and isinstance(value, Expr | int | float):
            value = annotation(value)
        return self.bind(k, name, value)

    def declare(self, k: int, name: str, annotation: Any, value: Any) -> Any:
        """`A: T.Tensor[...]` without a value: says what a parameter is."""
        builder = current()
        if builder is None or len(builder.activations) != 1 or name not in builder.scope.values:
            if isinstance(annotation, TensorType | DTypeName):
                raise fault(
                    f"`{name}` is declared but is not a parameter",
                    "an annotation without a value says what a parameter of the kernel is",
                    f"add `{name}` to the parameters, or assign it a value",
                    self.loc(k),
                )
            return value
        made = builder.table.declare(name, annotation, value)
        builder.scope.values[name] = made
        return made

    # -- several targets ---------------------------------------------------------------------------------------------

    def once(self, k: int, value: Any) -> Any:
        """A value given to several targets is computed once."""
        builder = builder_of()
        return self.let(builder, "value", value, self.loc(k)) if isinstance(value, Expr) else value

    def unpack(self, k: int, names: tuple[str | None, ...], value: Any) -> tuple[Any, ...]:
        """The right side of a tuple assignment, all of it evaluated before any target changes."""
        if isinstance(value, Expr | BLOCK) or not isinstance(value, Iterable):
            raise fault(
                f"{describe_value(value)} cannot be unpacked",
                "a tuple assignment takes a tuple of values",
                f"write {len(names)} values on the right side",
                self.loc(k),
            )
        values = tuple(value)
        if len(values) != len(names):
            raise fault(
                f"{len(values)} values for {len(names)} targets",
                "both sides of a tuple assignment have equally many entries",
                f"write {len(values)} target{'s' * (len(values) != 1)}",
                self.loc(k),
            )
        builder = builder_of()
        stores = any(n is None or n in builder.scope.variables or n in builder.scope.vectors for n in names)
        if not stores or builder.launch is None:
            return values
        return tuple(self.known(builder, v, self.loc(k)) for v in values)

    def known(self, builder: Builder, value: Any, loc: Loc) -> Any:
        """A value as it is now, whatever is stored afterwards."""
        if isinstance(value, Lanes):
            return value.mapped(lambda lane: self.let(builder, "value", lane, loc))
        return self.let(builder, "value", value, loc) if isinstance(value, Expr) else value

    # -- augmented assignment ----------------------------------------------------------------------------------------

    def augment(self, k: int, name: str, op: str, old: Any, value: Any) -> Any:
        if (isinstance(old, Buffer) and old.space != "var") or isinstance(old, Region):
            raise fault(
                f"`{name}` is a tile and is changed without an index",
                "an augmented assignment changes a scalar or an element",
                f"write `{name}[i, j]` inside T.Parallel, or a tile operation",
                self.loc(k),
            )
        if isinstance(old, list) and op == "add":
            old += value
            return old
        now = self.read(k, name, old)
        if isinstance(now, Expr | BLOCK) or isinstance(value, Expr | BLOCK):
            return self.bind(k, name, self.binary(k, op, now, value))
        return self.bind(k, name, PYTHON[op](now, value))

    def augment_item(self, k: int, owner: Any, index: Any, op: str, value: Any) -> None:
        old = self.item(k, owner, index)
        if isinstance(old, Region):
            old = self.scalar(k, old, op)
        self.store(k, k, owner, index, self.binary(k, op, old, value))

    # -- elements ----------------------------------------------------------------------------------------------------

    def store(self, k: int, whole: int, owner: Any, index: Any, value: Any) -> None:
        """`owner[index] = value`; `whole` numbers the statement, `k` its target."""
        if isinstance(owner, Load) and owner.buffer.space == "var":
            owner = owner.buffer
        if not isinstance(owner, Buffer):
            self.store_python(k, owner, index, value)
            return
        if has_ramp(index):
            self.store_lanes(whole, elements_at(owner, index, self.loc(k)), value)
            return
        target = index_buffer(owner, index, self.loc(k))
        k = whole
        if isinstance(target, Region):
            self.store_slice(k, target, value)
            return
        if isinstance(value, Region) or (isinstance(value, Buffer) and value.space == "var"):
            value = self.scalar(k, value, "=")
        if not isinstance(value, Expr | int | float) and not hasattr(value, "item"):
            raise fault(
                f"{describe_value(value)} stored to an element of `{owner.name}`",
                "an element takes a number or a scalar expression",
                "use T.copy or T.fill for tiles",
                self.loc(k),
            )
        builder_of().emit(Store(owner, target.indices, fitted(value, owner), loc=self.loc(k)))

    def store_slice(self, k: int, target: Region, value: Any) -> None:
        """A slice of one element is an element; longer ones belong to tile operations."""
        if all(isinstance(e, int) and e == 1 for e in target.extents):
            value = fitted(self.scalar(k, value, "="), target.buffer)
            builder_of().emit(Store(target.buffer, target.starts, value, loc=self.loc(k)))
            return
        extents = target.extents
        if isinstance(value, tuple | Lanes) and extents[-1] == len(value) and all(e == 1 for e in extents[:-1]):
            *front, last = target.starts
            row = [Load(target.buffer, (*front, last + n), loc=target.loc) for n in range(len(value))]
            self.store_lanes(k, Lanes(row), value if isinstance(value, Lanes) else Lanes(value))
            return
        raise fault(
            f"a slice of `{target.buffer.name}` is assigned",
            "`=` stores one element, or a tuple of as many values as the slice has elements",
            "use T.copy(src, dst) or T.fill(dst, value), or a T.Parallel loop over the elements",
            self.loc(k),
        )

    def store_lanes(self, k: int, places: Lanes, value: Any) -> None:
        """A vector to elements side by side: all of its lanes are known before the first one is stored."""
        builder = builder_of()
        given = alike(self.scalar(k, value, "="), len(places), "a store")
        targets = [place for place in places if isinstance(place, Load)]
        changed = {place.buffer for place in targets}
        if any(isinstance(n, Load) and n.buffer in changed for lane in given for n in walk(lane)):
            given = Lanes([self.let(builder, "lane", lane, self.loc(k)) for lane in given])
        for place, lane in zip(targets, given, strict=True):
            builder.emit(Store(place.buffer, place.indices, fitted(lane, place.buffer), loc=self.loc(k)))

    def store_python(self, k: int, owner: Any, index: Any, value: Any) -> None:
        """An entry of a Python list or dict; an entry that is a variable is stored to."""
        if isinstance(owner, Expr | Region):
            raise fault(
                f"an element of {describe_value(owner)} is assigned",
                "only tiles and Python containers have elements",
                "name the buffer itself",
                self.loc(k),
            )
        try:
            held = owner[index]
        except (KeyError, IndexError):
            held = None
        if isinstance(held, Buffer) and held.space == "var" and isinstance(value, Expr | int | float):
            builder_of().emit(Store(held, element(held).indices, fitted(value, held), loc=self.loc(k)))
            return
        owner[index] = value

    def effect(self, k: int, value: Any) -> None:
        """An expression statement: kept when it may do something."""
        builder = current()
        if builder is None:
            return
        if hasattr(value, "launch_kind"):
            raise fault(
                f"T.{value.launch_kind} without `with`", "it opens a block", f"write `with T.{value.launch_kind}(...):`"
            )
        if isinstance(value, Expr) and not isinstance(value, Const | Var | Load):
            builder.emit(Eval(value, loc=self.loc(k)))


def _itself(value: Any) -> Any:
    return value


def _open(builder: Builder, frame: Frame) -> bool:
    return any(f is frame for f in builder.frames)
