"""An interactive workbench for GPU tile kernels.

`import tileworkbench as tw`, `import tileworkbench.language as T`, and `%load_ext tileworkbench` in a notebook."""

from __future__ import annotations

import importlib
import types
from typing import TYPE_CHECKING, Any

from . import simulate
from .options import options

if TYPE_CHECKING:
    from .checks.check import Check, check
    from .compat import alias_tilelang
    from .compat.environment import disable_cache, enable_cache, is_cache_enabled
    from .compat.integers import cdiv, next_power_of_2
    from .jitkernel import JITFunction, JITKernel, compile, jit, par_compile
    from .jitkernel.passconfig import PassConfigKey
    from .jitkernel.supply import TensorSupplyType
    from .magics import load_ipython_extension, unload_ipython_extension
    from .target import Target
    from .tune import autotune
    from .views.result import Result

__all__ = [
    "Check",
    "JITFunction",
    "JITKernel",
    "PassConfigKey",
    "Result",
    "Target",
    "TensorSupplyType",
    "alias_tilelang",
    "autotune",
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
    "alias_tilelang": "compat",
    "autotune": "tune",
    "check": "checks",
    "compile": "jitkernel",
    "jit": "jitkernel",
    "PassConfigKey": "jitkernel.passconfig",
    "TensorSupplyType": "jitkernel.supply",
    "cdiv": "compat.integers",
    "disable_cache": "compat.environment",
    "enable_cache": "compat.environment",
    "is_cache_enabled": "compat.environment",
    "next_power_of_2": "compat.integers",
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
