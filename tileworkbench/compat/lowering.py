"""tilelang.lower: a kernel's device text and parameters, without a launcher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ir.expr import Buffer, Const, Var
from ..ir.kernel import Kernel
from ..jitkernel import JITKernel, compile
from ..jitkernel.compiling import as_kernel
from ..language.dtypes import dtype as language_dtype


@dataclass
class KernelParam:
    """One parameter: `dtype`, and `shape` as numbers and symbols (empty for a scalar)."""

    dtype: Any
    shape: list[Any]
    name: str = ""

    @classmethod
    def from_buffer(cls, buffer: Buffer) -> KernelParam:
        extents = [e.value if isinstance(e, Const) else e for e in buffer.shape]
        return cls(language_dtype(buffer.dtype), extents, buffer.name)

    @classmethod
    def from_var(cls, var: Var) -> KernelParam:
        return cls(language_dtype(var.dtype), [], var.name)

    def is_scalar(self) -> bool:
        return not self.shape

    def is_unsigned(self) -> bool:
        return str(self.dtype).startswith("uint")

    def is_float8(self) -> bool:
        return str(self.dtype).startswith("float8")

    def is_float4(self) -> bool:
        return str(self.dtype).startswith("float4")

    def is_boolean(self) -> bool:
        return str(self.dtype) == "bool"

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
    kernel: JITKernel
    rt_mod: Any = None


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
    built twice, and there is no host text."""
    kernel = compile(func, target=target)
    return CompiledArtifact(kernel.tile, kernel.kernel, params_of(kernel.tile), kernel.source, kernel)


def simplify_prim_func(func: Any) -> Any:
    """The kernel, or the function that makes one, as it is: expressions are simplified when they are made."""
    if not callable(func):
        as_kernel(func)  # raises for what is no kernel
    return func
