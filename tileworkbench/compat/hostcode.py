"""Functions without launches, as TVM compiles them for the host: a module, its executable, tensors to call it with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.dtype import dtype as to_dtype
from ..jitkernel import JITKernel
from ..jitkernel import compile as compile_kernel
from ..language.prim import PrimFunc, read_host


class IRModule(dict[str, PrimFunc]):
    """Functions by name."""

    @classmethod
    def from_expr(cls, func: PrimFunc) -> IRModule:
        return cls({func.name: func, "main": func})

    @property
    def functions(self) -> IRModule:
        return self


def unchanged(*_: Any, **__: Any) -> Callable[[IRModule], IRModule]:
    """A pass that joins or splits `if` statements of one meaning: there is nothing to do for it here."""
    return lambda module: module


class Tensor:
    """An array as TVM's runtime holds it."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def numpy(self) -> np.ndarray:
        return self.array


def tensor(array: Any, device: Any = None) -> Tensor:
    """A tensor with an array's values, in memory of its own."""
    return Tensor(np.array(array))


def empty(shape: Any, dtype: Any = "float32", device: Any = None) -> Tensor:
    """A tensor without values yet (zeros)."""
    return Tensor(np.zeros(tuple(shape), to_dtype(dtype).numpy))


def cpu(index: int = 0) -> str:
    """The host, as a device."""
    return "cpu"


class Executable:
    """A compiled function of the host."""

    def __init__(self, kernel: JITKernel) -> None:
        self.kernel = kernel

    def __call__(self, *args: Any) -> Any:
        return self.kernel(*(a.array if isinstance(a, Tensor) else a for a in args))

    def __getitem__(self, name: str) -> Executable:
        return self

    def jit(self, **options: Any) -> Executable:
        """The function itself: no text is compiled for the host."""
        return self


def compile(mod: Any, target: Any = None, **_: Any) -> Executable:
    """A T.prim_func, or a module's only one, for the host: what stands outside launches is run once, in order."""
    func = next(iter(mod.values())) if isinstance(mod, IRModule) else mod
    return Executable(compile_kernel(read_host(func), target="cpu"))
