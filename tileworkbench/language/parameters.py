"""The parameters of a kernel: from annotations, from declarations in the body, and from an eager call's arguments."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import LanguageError, Loc, TileError
from ..ir.dtype import DTYPES, DType
from ..ir.expr import Buffer, Expr, Var
from ..ir.node import walk
from .builder import Builder
from .dtypes import dtype as DTypeName
from .faults import fault
from .source import find
from .tensor import PointerFactory, PointerType, TensorFactory, TensorType


@dataclass(eq=False)
class Undeclared:
    """A parameter whose type the body has yet to declare; `value` is what an eager call gave."""

    name: str
    loc: Loc | None
    value: Any = None


class Table:
    """The parameters of one reading, in order. `constants` are the values that T.const names have (phase 2)."""

    def __init__(self, builder: Builder, fn: Callable[..., Any], constants: Mapping[str, int] | None = None) -> None:
        self.builder, self.fn = builder, fn
        self.constants = constants
        self.symbols: dict[str, Var] = {}  # T.const names seen in phase 1
        self.made: dict[str, Buffer | Var] = {}
        self.types: dict[str, Any] = {}
        self.defaults: dict[Var, Any] = {}
        self.pointers: dict[str, Buffer] = {}
        self.undeclared: dict[str, Undeclared] = {}
        self.signature = inspect.signature(fn)
        self.source = find(fn)
        args = self.source.node.args
        self.places = {a.arg: a for a in (*args.args, *args.kwonlyargs)}

    def loc(self, name: str) -> Loc:
        return self.source.loc(self.places[name])

    # -- making ------------------------------------------------------------------------------------------------------

    def bind(self, annotations: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """The value that each parameter has while tracing."""
        values: dict[str, Any] = {}
        args = self.source.node.args
        for name, parameter in self.signature.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
                raise fault(
                    f"the parameter `{stars}{name}`", "a kernel has a fixed list of parameters", "name each one",
                    self.source.loc(args.vararg if stars == "*" else args.kwarg),
                )  # fmt: skip
            values[name] = self.value(name, annotations.get(name), parameter, given)
        return values

    def value(self, name: str, annotation: Any, parameter: inspect.Parameter, given: Mapping[str, Any]) -> Any:
        if is_type(annotation):
            return self.add(name, annotation, parameter.default)
        if name in given and not is_array(given[name]):
            return given[name]
        if not is_array(given.get(name)) and parameter.default is not parameter.empty:
            return parameter.default
        self.undeclared[name] = Undeclared(name, self.loc(name), given.get(name))
        return self.undeclared[name]

    def add(self, name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> Buffer | Var:
        """Makes the kernel parameter that an annotation describes."""
        if isinstance(annotation, PointerFactory):
            annotation = PointerType(DTYPES["float32"])
        self.reserve(annotation)
        unique = self.builder.unique(name)
        made: Buffer | Var
        if isinstance(annotation, TensorType):
            made = Buffer(unique, annotation.shape, annotation.dtype, "global", annotation.strides, loc=self.loc(name))
        elif isinstance(annotation, PointerType):
            made = Var(unique, dtype=DTYPES["handle"], loc=self.loc(name))
        else:
            made = Var(unique, dtype=annotation.__dtype__, loc=self.loc(name))
            if default is not inspect.Parameter.empty:
                self.defaults[made] = default
        self.made[name], self.types[name] = made, annotation
        self.undeclared.pop(name, None)
        self.builder.params.append(made)
        return made

    def reserve(self, annotation: Any) -> None:
        """Names of symbols are taken, so that no local gets one of them."""
        entries = (*annotation.shape, *(annotation.strides or ())) if isinstance(annotation, TensorType) else ()
        for entry in entries:
            if isinstance(entry, Expr):
                self.builder.names.update(n.name for n in walk(entry) if isinstance(n, Var))

    def declare(self, name: str, annotation: Any, held: Any) -> Any:
        """A declaration in the body, `A: T.Tensor[...]` or `M: T.int32`, for a parameter without a type."""
        if not is_type(annotation):
            return held
        if name in self.made:
            raise fault(
                f"`{name}` is declared twice", "a parameter's type is given once", "remove one of the annotations"
            )
        default = self.signature.parameters[name].default
        return self.add(name, annotation, default)

    def complete(self) -> bool:
        """Every parameter has a type or a value, and every T.const is an extent or stride of a tensor."""
        entries = [e for t in self.types.values() if isinstance(t, TensorType) for e in (*t.shape, *(t.strides or ()))]
        return not self.undeclared and all(any(e is s for e in entries) for s in self.symbols.values())

    # -- constants and pointers --------------------------------------------------------------------------------------

    def constant(self, name: str, of: DType) -> Any:
        """T.const: a symbol while the signature is read, its value afterwards."""
        if self.constants is None:
            return self.symbols.setdefault(name, Var(name, dtype=of))
        return self.constants[name]

    def resolve_pointer(self, pointer: Var, tensor: Buffer) -> Buffer:
        """A pointer parameter becomes a tensor parameter once the body says its shape."""
        place = next(n for n, p in enumerate(self.builder.params) if p is pointer)
        self.builder.params[place] = tensor
        self.pointers[pointer.name] = tensor
        return tensor

    def ordered(self, names: list[str]) -> list[Buffer | Var]:
        """Kernel parameters in the order of the function's parameters."""
        out = []
        for name in names:
            if name in self.made:
                made = self.made[name]
                out.append(self.pointers.get(made.name, made))
        return out


def untyped(parameter: Undeclared) -> LanguageError:
    """The error for a parameter whose type nothing says."""
    return fault(
        f"the parameter `{parameter.name}` has no type",
        "each parameter is annotated, in the signature or by a line of the body before its first use",
        f"write `{parameter.name}: T.Tensor((M, N), dtype)`",
        parameter.loc,
    )


def is_type(annotation: Any) -> bool:
    return isinstance(annotation, TensorType | PointerType | PointerFactory | DTypeName)


def is_array(value: Any) -> bool:
    """Something with a shape and a dtype: an array, or a T.Tensor(...) standing for one."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, Expr)


def annotations_of(fn: Callable[..., Any], outer: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluated annotations; strings see the function's closure, its globals, and the scope that defined it."""
    out: dict[str, Any] = {}
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    scope = ChainMap({n: c.cell_contents for n, c in cells if has_contents(c)}, dict(outer))
    for name, annotation in fn.__annotations__.items():
        if type(annotation) is str and name != "return":  # a dtype object is a str too
            annotation = _evaluate(fn, name, annotation, scope)
        if isinstance(annotation, TensorFactory):
            annotation = None  # `A: T.Tensor` leaves the shape to the body
        out[name] = annotation
    return out


def has_contents(cell: Any) -> bool:
    """Whether a closure cell has been filled yet."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _evaluate(fn: Callable[..., Any], name: str, text: str, scope: Mapping[str, Any]) -> Any:
    try:
        return eval(text, fn.__globals__, scope)
    except Exception as error:
        source = find(fn)
        place = next((a for a in source.node.args.args if a.arg == name), source.node)
        loc = source.loc(getattr(place, "annotation", None) or place)
        if isinstance(error, TileError):
            raise error.at(loc) from None
        if not isinstance(error, NameError):
            raise fault(
                f"the annotation of `{name}`: {type(error).__name__}: {error}",
                "an annotation is an expression that names a type",
                "write `A: T.Tensor((M, N), dtype)`",
                loc,
            ) from error
        raise fault(
            f"the annotation of `{name}` uses `{error.name}`, which is not defined",
            "annotations see the function's globals, its closure and the scope around it",
            f"define `{error.name}` before the kernel",
            loc,
        ) from None
