"""TileLang's members of a decorated function that are other names for what `JITFunction` has."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..ir.text import show

if TYPE_CHECKING:
    from ..language.prim import PrimFunc
    from .decorator import JITFunction
    from .kernel import JITKernel


class Setting:
    """One of the decorator's settings, which may be assigned: kernels made before are forgotten."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, function: Any, owner: type) -> Any:
        return self if function is None else function.settings[self.name]

    def __set__(self, function: Any, value: Any) -> None:
        function.settings = {**function.settings, self.name: value}
        function.forget()


class Told:
    """A setting that changes no kernel."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, function: Any, owner: type) -> Any:
        return self if function is None else function.told.get(self.name)

    def __set__(self, function: Any, value: Any) -> None:
        function.told = {**function.told, self.name: value}


class Elaborator:
    """The function below the decorator: a call gives the kernel's text for these arguments, not compiled."""

    def __init__(self, function: JITFunction) -> None:
        self.function = function
        self.orig_func = self.__wrapped__ = function.fn
        self.__name__, self.signature = function.fn.__name__, function.signature

    @property
    def mode(self) -> str:
        """ "lazy" or "eager"."""
        return self.function.style

    def __call__(self, *args: Any, **named: Any) -> PrimFunc:
        return self.function.get_tir(*args, **named)

    get_tir = __call__


class FunctionNames:
    """Mixed into JITFunction."""

    out_idx, target, pass_configs, compile_flags = Setting(), Setting(), Setting(), Setting()
    execution_backend, target_host, verbose, debug_root_path = Told(), Told(), Told(), Told()

    if TYPE_CHECKING:  # of the class that this is mixed into
        fn: Callable[..., Any]
        told: dict[str, Any]
        _signature: inspect.Signature
        _kernels: dict[Any, JITKernel]
        _calls: dict[Any, Any]

        @functools.cached_property
        def style(self) -> str: ...

    @property
    def func(self) -> Elaborator:
        """The function as one that gives a T.prim_func for a call's arguments."""
        return Elaborator(self)  # type: ignore[arg-type]

    @property
    def func_source(self) -> str:
        """The function's text."""
        return inspect.getsource(self.fn)

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the decorated function."""
        return self._signature

    @property
    def mode(self) -> str:
        """ "lazy" or "eager"; it follows from the text and cannot be chosen."""
        return self.style

    @mode.setter
    def mode(self, value: str) -> None:
        if value not in ("auto", self.style):
            raise OptionError(
                f"mode={value!r} of `{self.fn.__name__}`",
                rule=f"its text makes it {self.style}",
                fix='return a T.prim_func from a "lazy" function, launch in an "eager" one',
            )

    def is_lazy_mode(self) -> bool:
        """Whether it is a factory that gives kernels."""
        return self.style == "lazy"

    def initialize_jit_mode(self, *_: Any, **__: Any) -> str:
        """The mode, which the text decides whatever the arguments."""
        return self.style

    @property
    def _kernel_cache(self) -> dict[Any, JITKernel]:
        """The kernels that calls made."""
        return self._kernels

    def forget(self) -> None:
        """The next call compiles again."""
        self._kernels.clear()
        self._calls.clear()

    def write_texts(self, kernel: JITKernel) -> None:
        """The device text and the kernel's own, in the folder `debug_root_path` if there is one."""
        if self.told.get("debug_root_path") is None:
            return
        folder, name = Path(self.told["debug_root_path"]), self.fn.__name__
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"tilelang_jit_kernel_{name}.c").write_text(kernel.source + "\n", encoding="utf-8")
        program = "\n".join(map(show, kernel.tiles))
        (folder / f"tilelang_jit_program_{name}.py").write_text(program + "\n", encoding="utf-8")
