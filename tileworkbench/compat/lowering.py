"""tilelang.lower: a kernel's device text and parameters, without a launcher."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..ir.expr import Buffer, Const, Expr, Var
from ..ir.kernel import Kernel
from ..ir.node import walk
from ..jitkernel import JITKernel as Compiled
from ..jitkernel import compile
from ..jitkernel.compiling import as_kernels
from ..language.dtypes import dtype as language_dtype
from ..language.prim import PrimFunc
from .passcontext import PassContext


@dataclass
class KernelParam:
    """One parameter: `dtype`, and `shape` as numbers and symbols (empty for a scalar)."""

    dtype: Any
    shape: list[Any]
    name: str = ""

    @classmethod
    def from_buffer(cls, buffer: Buffer) -> KernelParam:
        """The parameter of a tensor."""
        extents = [e.value if isinstance(e, Const) else e for e in buffer.shape]
        return cls(language_dtype(buffer.dtype), extents, buffer.name)

    @classmethod
    def from_var(cls, var: Var) -> KernelParam:
        """The parameter of a number."""
        return cls(language_dtype(var.dtype), [], var.name)

    def is_scalar(self) -> bool:
        """Whether it is a number, not a tensor."""
        return not self.shape

    def is_unsigned(self) -> bool:
        """Whether it is of an unsigned integer type."""
        return str(self.dtype).startswith("uint")

    def is_float8(self) -> bool:
        """Whether it is of an eight-bit floating-point type."""
        return str(self.dtype).startswith("float8")

    def is_float4(self) -> bool:
        """Whether it is of a four-bit floating-point type."""
        return str(self.dtype).startswith("float4")

    def is_boolean(self) -> bool:
        """Whether it is a truth value."""
        return str(self.dtype) == "bool"

    def tilelang_dtype(self) -> Any:
        """The language's type."""
        return self.dtype

    def torch_dtype(self) -> Any:
        """The torch dtype of the same name."""
        import torch

        return getattr(torch, str(self.dtype))


@dataclass
class CompiledArtifact:
    """What `lower` gives. `kernel_source` is the device text; `kernel` the compiled kernel behind it; the modules are
    this package's kernels (tile-level on the host's side, lowered on the device's)."""

    host_mod: Kernel
    device_mod: Kernel
    params: list[KernelParam]
    kernel_source: str
    kernel: Compiled
    rt_mod: Any = None


class _Compiling(type):
    """`JITKernel(func, out_idx, …)` compiles, and every compiled kernel is an instance."""

    def __call__(cls, func: Any = None, out_idx: Any = None, *args: Any, **named: Any) -> Compiled:
        return compile(func, out_idx, *args, **named)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Compiled)


class JITKernel(metaclass=_Compiling):
    """TileLang's name of a compiled kernel, which is also how one is made there."""


def params_of(kernel: Kernel) -> list[KernelParam]:
    """A kernel's parameters in TileLang's form."""
    return [KernelParam.from_buffer(p) if isinstance(p, Buffer) else KernelParam.from_var(p) for p in kernel.params]


def lower(
    func: Any,
    target: Any = "auto",
    target_host: Any = None,
    runtime_only: bool = False,
    enable_host_codegen: bool = False,
    enable_device_compile: bool = False,
    **_: Any,
) -> CompiledArtifact:
    """The device text and parameters of a T.prim_func. The other switches are accepted for TileLang's sake: nothing is
    built twice, and there is no host text. "auto" is the target of the `with` block around, where there is one."""
    asked = None if isinstance(target, str) and target == "auto" else target
    kernel = compile(func, target=asked, pass_configs=PassContext.current().config)
    return CompiledArtifact(kernel.tile, kernel.kernel, params_of(kernel.tile), kernel.source, kernel)


def cached(func: Any = None, out_idx: Any = None, *_: Any, **settings: Any) -> Compiled:
    """`compile`, whose kernels are kept on disk and in memory as they are."""
    return compile(func, out_idx, **settings)


def apply_simplify(stmt: Any, inline_let: bool = False) -> PrimFunc:
    """The kernel without the parameters that it does not use, as TileLang's pass leaves it. (Expressions are simplified
    when they are made.)"""
    kernels = as_kernels(stmt)
    used: set[Buffer | Var] = set()
    for kernel in kernels:
        used |= {n for n in walk((*kernel.body, *_extents(kernel.grid))) if isinstance(n, Buffer | Var)}
    known = {e for p in kernels[0].params if p in used for e in _symbols(p)}
    kept = []
    for place, param in enumerate(kernels[0].params):
        if param in used or (set(_symbols(param)) & used) - known:
            kept.append(place)
            known |= set(_symbols(param))
    lean = tuple(_with_params(kernel, kept) for kernel in kernels)
    return PrimFunc(lean, getattr(stmt, "fn", stmt))


def _with_params(kernel: Kernel, kept: list[int]) -> Kernel:
    params = tuple(kernel.params[place] for place in kept)
    return kernel.with_(params=params, outputs=tuple(kept.index(place) for place in kernel.outputs))


def _symbols(param: Buffer | Var) -> Iterator[Var]:
    """The symbols that a tensor's shape and strides tell, or the scalar itself."""
    if isinstance(param, Var):
        yield param
        return
    yield from (e for e in (*param.shape, *(param.strides or ())) if isinstance(e, Var))


def _extents(grid: tuple[Any, ...]) -> tuple[Expr, ...]:
    return tuple(e for e in grid if isinstance(e, Expr))


def simplify_prim_func(func: Any) -> Any:
    """A function whose kernel has its unused parameters left out; a kernel gives one at once."""
    if isinstance(func, PrimFunc | Kernel):
        return apply_simplify(func)

    @functools.wraps(func)
    def simplified(*args: Any, **named: Any) -> PrimFunc:
        return apply_simplify(func(*args, **named))

    return simplified
