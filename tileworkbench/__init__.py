"""An interactive workbench for GPU tile kernels.

`import tileworkbench as tw`, `import tileworkbench.language as T`, and `%load_ext tileworkbench` in a notebook."""

from __future__ import annotations

import importlib
import types
from typing import TYPE_CHECKING, Any

from . import simulate
from .options import options

if TYPE_CHECKING:
    from .checks import Check, check
    from .jitkernel import JITFunction, JITKernel, compile, jit, par_compile
    from .magics import load_ipython_extension, unload_ipython_extension
    from .target import Target
    from .tilelang import (
        PassConfigKey,
        TensorSupplyType,
        cdiv,
        disable_cache,
        enable_cache,
        is_cache_enabled,
        next_power_of_2,
    )
    from .views.result import Result

__all__ = [
    "Check",
    "JITFunction",
    "JITKernel",
    "PassConfigKey",
    "Result",
    "Target",
    "TensorSupplyType",
    "cdiv",
    "check",
    "compile",
    "disable_cache",
    "enable_cache",
    "is_cache_enabled",
    "jit",
    "load_ipython_extension",
    "next_power_of_2",
    "options",
    "par_compile",
    "simulate",
    "unload_ipython_extension",
]

# Where each public name lives: opened when it is first asked for, so that importing the package stays quick.
_HOMES = {
    "Check": "checks",
    "JITFunction": "jitkernel",
    "JITKernel": "jitkernel",
    "Result": "views.result",
    "Target": "target",
    "check": "checks",
    "compile": "jitkernel",
    "jit": "jitkernel",
    "PassConfigKey": "tilelang",
    "TensorSupplyType": "tilelang",
    "cdiv": "tilelang",
    "disable_cache": "tilelang",
    "enable_cache": "tilelang",
    "is_cache_enabled": "tilelang",
    "next_power_of_2": "tilelang",
    "load_ipython_extension": "magics",
    "par_compile": "jitkernel",
    "unload_ipython_extension": "magics",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tileworkbench' has no attribute {name!r}")
    found = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


class _Simulate(types.ModuleType):
    """The room of the machines, and the function that runs a kernel on one of them: both are called `simulate`."""

    def __call__(self, kernel: Any, *args: Any, **settings: Any) -> Any:
        return importlib.import_module(".jitkernel", __name__).simulate(kernel, *args, **settings)


simulate.__class__ = _Simulate
