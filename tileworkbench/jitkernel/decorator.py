"""The jit decorator: lazy factories, whose calls give kernels, and eager functions, which are called with tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ArgumentError, LanguageError, OptionError, TileError
from ..ir.kernel import Kernel
from ..language import eager
from ..language.macro import Macro
from ..language.prim import PrimFunc
from ..language.reader import defining_scope
from ..language.source import find
from ..options import options
from ..target import Target
from .compiling import all_of, compile, finish
from .functionnames import FunctionNames
from .kernel import JITKernel
from .keys import is_hashable, key_of
from .settings import check_backend, with_settings
from .style import style_of
from .surroundings import Surroundings
from .timing import Timing

KEPT = 1024  # calls remembered by a decorated function; the oldest goes first


def jit(
    func: Any = None,
    *,
    out_idx: int | Sequence[int] | None = None,
    target: Any = None,
    target_host: Any = None,
    execution_backend: str | None = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    debug_root_path: str | None = None,
    compile_flags: str | Sequence[str] | None = None,
) -> Any:
    """Makes a function compile itself when it is called; with and without parentheses.

    A function around a T.prim_func (or one that returns one) is a factory: `factory(*config)` gives a JITKernel. Any
    other is eager: `fn(*tensors, **config)` compiles for these shapes, runs, and gives its T.empty tensors. Results are
    kept per call signature. `out_idx`, `target`, `pass_configs` and `compile_flags` as for `compile`; the kernels'
    text is written into the folder `debug_root_path`; the others are accepted for TileLang's sake."""
    check_backend(execution_backend)
    settings = {"out_idx": out_idx, "target": target, "pass_configs": pass_configs, "compile_flags": compile_flags}
    told = {
        "execution_backend": execution_backend, "target_host": target_host, "verbose": verbose,
        "debug_root_path": debug_root_path,
    }  # fmt: skip
    if func is None:
        # A named inner function, so that its frame is known when it looks for the scope it decorates in.
        def decorate(fn: Any) -> Any:
            return decorated(fn, settings, defining_scope(1), told)

        return decorate
    return decorated(func, settings, defining_scope(1), told)


def decorated(func: Any, settings: dict[str, Any], outer: dict[str, Any], told: dict[str, Any]) -> Any:
    """What jit makes of a function, or of a kernel that was read already."""
    if isinstance(func, PrimFunc | Kernel | Macro):
        return compile(func, **settings)
    if not callable(func) or not hasattr(func, "__code__"):
        raise LanguageError(
            f"jit of {type(func).__name__}", rule="jit decorates a function", fix="write it above a `def`"
        )
    return JITFunction(func, settings, outer, told)


class JITFunction(FunctionNames):
    """A decorated function. Calling it follows its style; `style` is "lazy" or "eager"."""

    def __init__(
        self,
        fn: Callable[..., Any],
        settings: dict[str, Any],
        outer: dict[str, Any],
        told: dict[str, Any] | None = None,
    ) -> None:
        functools.update_wrapper(self, fn)
        self.fn, self.settings, self.outer, self.told = fn, settings, outer, told or {}
        self._signature = inspect.signature(fn)
        self._surroundings = Surroundings(fn)
        self._kernels: dict[Any, JITKernel] = {}
        self._calls: dict[Any, tuple[JITKernel, tuple[str, ...]]] = {}

    @functools.cached_property
    def style(self) -> str:
        """ "lazy" for a factory that gives kernels, "eager" for a function whose text is the kernel."""
        return style_of(self.fn)

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self.style == "lazy":
            return self.compile(*args, **named)
        values = self._bound(args, named)
        kernel, takes = self._eager(values)
        return kernel(*[values[name] for name in takes])

    def compile(self, *args: Any, **named: Any) -> JITKernel:
        """The kernel for a call with these arguments; T.Tensor(shape, dtype) may stand for tensors, and the tensors of
        an eager function may be left out when its T.const values are given by name."""
        values = self._bound(args, named, partial=self.style == "eager")
        return self._lazy(values) if self.style == "lazy" else self._eager(values)[0]

    def get_tir(self, *args: Any, **named: Any) -> PrimFunc:
        """The text of the kernels of such a call: what `compile` takes, not compiled."""
        values = self._bound(args, named, partial=self.style == "eager")
        if self.style == "lazy":
            made = self._made(values)
            return made if isinstance(made, PrimFunc) else PrimFunc((made,), self.fn)
        return PrimFunc(eager.elaborate_all(self.fn, values, outer=self.outer), self.fn)

    def get_kernel_source(self, *args: Any, **named: Any) -> str:
        """The generated text of the kernel that a call with these arguments would run."""
        return self.compile(*args, **named).source

    def parse_cache_key(self, *args: Any, **named: Any) -> Any:
        """What tells calls of different kernels apart."""
        return self._key(self._bound(args, named))

    def par_compile(
        self, configs: Sequence[Any], num_workers: int | None = None, ignore_error: bool = False
    ) -> list[JITKernel | None]:
        """Kernels for many configurations (mappings or tuples of arguments), compiled at a time in processes of the
        compiler's own; with `ignore_error` a configuration that cannot be compiled gives None."""

        def build(config: Any) -> JITKernel:
            return self.compile(**config) if isinstance(config, Mapping) else self.compile(*config)

        return all_of(build, configs, num_workers, ignore_error)

    def under(self, **settings: Any) -> JITFunction:
        """The same function under other settings: out_idx, target, pass_configs, compile_flags."""
        return JITFunction(self.fn, {**self.settings, **settings}, self.outer, self.told)

    def for_target(self, target: Any) -> JITFunction:
        """The same function for another target."""
        return self.under(target=target)

    def unknown_sizes(self, given: Mapping[str, Any]) -> list[str]:
        """T.const names of an eager function that `given` does not hold."""
        return [name for name in eager.signature(self.fn, given, self.outer).consts if name not in given]

    def for_sizes(self, given: Mapping[str, Any]) -> JITKernel:
        """The kernel of an eager function for sizes and constants by name, without tensors."""
        names = self._signature.parameters
        defaults = {n: p.default for n, p in names.items() if p.default is not p.empty}
        return self._elaborated({**defaults, **given})[0]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    # Calls to arguments by name.

    def _bound(self, args: Sequence[Any], named: Mapping[str, Any], partial: bool = False) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        if named and self.style == "eager":  # values of T.const names may be given by name
            extra = {k: v for k, v in named.items() if k not in self._signature.parameters}
            named = {k: v for k, v in named.items() if k not in extra}
        try:
            bind = self._signature.bind_partial if partial else self._signature.bind
            bound = bind(*args, **named)
        except TypeError as error:
            raise ArgumentError(
                f"`{self.fn.__name__}`: {error}",
                rule=f"it is called as {self.fn.__name__}{_shown(self._signature)}",
                fix="pass these arguments",
                loc=self._loc(),
            ) from None
        bound.apply_defaults()
        return {**bound.arguments, **extra}

    def _loc(self) -> Any:
        try:
            found = find(self.fn)
        except TileError:
            return None
        return found.span(found.node.lineno, found.node.col_offset, found.node.lineno, found.node.col_offset + 3)

    def _key(self, values: Mapping[str, Any]) -> Any:
        parts = [(name, key_of(value)) for name, value in values.items()]
        target = self.settings["target"]
        key = (tuple(parts), self._surroundings.state(), str(options.target if target is None else target))
        try:
            hash(key)
        except TypeError:
            name = next(n for n, part in parts if not is_hashable(part))
            raise ArgumentError(
                f"`{name}` is a {type(values[name]).__name__}, which cannot be told apart from others",
                rule="a kernel's configuration is made of hashable values",
                fix="pass a tuple instead of a list",
                loc=self._loc(),
            ) from None
        return key

    # The two styles.

    def _lazy(self, values: Mapping[str, Any]) -> JITKernel:
        key = self._key(values)
        known = self._kernels.get(key)
        if known is not None:
            return known
        kernel = compile(self._made(values), **self.settings)
        self.write_texts(kernel)
        self._remember(self._kernels, key, kernel)
        return kernel

    def _made(self, values: Mapping[str, Any]) -> PrimFunc | Kernel:
        """What the factory returns for these arguments."""
        made = self.fn(*self._positional(values), **self._by_name(values))
        if not isinstance(made, PrimFunc | Kernel):
            raise LanguageError(
                f"`{self.fn.__name__}` gave {type(made).__name__}",
                rule="a factory returns its T.prim_func",
                fix="end it with `return` and the kernel's name",
                loc=self._loc(),
            )
        return made

    def _positional(self, values: Mapping[str, Any]) -> list[Any]:
        kinds = {n: p.kind for n, p in self._signature.parameters.items()}
        out: list[Any] = []
        for name, kind in kinds.items():
            if kind == inspect.Parameter.VAR_POSITIONAL:
                out += values.get(name, ())
            elif kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
                out.append(values[name])
        return out

    def _by_name(self, values: Mapping[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, parameter in self._signature.parameters.items():
            if parameter.kind == inspect.Parameter.KEYWORD_ONLY:
                out[name] = values[name]
            elif parameter.kind == inspect.Parameter.VAR_KEYWORD:
                out |= values.get(name, {})
        return out

    def _eager(self, values: Mapping[str, Any]) -> tuple[JITKernel, tuple[str, ...]]:
        if self.settings["out_idx"] is not None:
            raise OptionError(
                f"out_idx for the eager function `{self.fn.__name__}`",
                rule="an eager kernel returns its outputs",
                fix="make them by T.empty and return them",
                loc=self._loc(),
            )
        key = self._key(values)
        known = self._calls.get(key)
        if known is None:
            known = self._elaborated(values)
            self._remember(self._calls, key, known)
        return known

    def _elaborated(self, values: Mapping[str, Any]) -> tuple[JITKernel, tuple[str, ...]]:
        """Shapes not seen before: another value of a T.const is another kernel, another T.dynamic extent is not."""
        found = eager.signature(self.fn, values, self.outer)
        consts = eager.constants(found, values)
        fixed = tuple((p.name, key_of(values[p.name])) for p in found.constants if p.name in values)
        key = (fixed, tuple(consts.items()), self._surroundings.state(), str(Target.of(self._target())))
        takes = tuple(p.name for p in found.params if p.kind != "constant")
        kernel = self._kernels.get(key)
        if kernel is None:
            timing = Timing()
            with timing.stage("read"):
                tiles = [
                    with_settings(tile, self.settings["pass_configs"], self.settings["compile_flags"])
                    for tile in eager.elaborate_all(self.fn, values, outer=self.outer)
                ]
            kernel = finish(tiles, self._target(), timing)
            self.write_texts(kernel)
            self._remember(self._kernels, key, kernel)
        return kernel, takes

    def _target(self) -> Any:
        return options.target if self.settings["target"] is None else self.settings["target"]

    def _remember(self, kept: dict[Any, Any], key: Any, value: Any) -> None:
        kept[key] = value
        while len(kept) > KEPT:
            kept.pop(next(iter(kept)), None)  # another thread may have been here first


def _shown(signature: inspect.Signature) -> str:
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))
