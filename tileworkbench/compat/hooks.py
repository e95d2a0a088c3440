"""TileLang's names for functions that edit generated text before it is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import TargetError
from ..jitkernel.hooks import register

# Targets whose text is made here; the launcher is no text, and there is no Metal target.
REASONS = {
    "c": "the host side of a launch is not generated text here",
    "metal": "there is no Metal target",
}


def _plain(dialect: str) -> Callable[..., None]:
    def registered(func: Callable[[str, Any], str], override: bool = True) -> None:
        if dialect in REASONS:
            raise TargetError(f"a hook for {dialect} text", rule=REASONS[dialect], fix="use the cuda or hip hook")
        register(dialect, func, override)

    return registered


register_cuda_postproc, register_hip_postproc = _plain("cuda"), _plain("hip")
register_c_postproc, register_metal_postproc = _plain("c"), _plain("metal")


def _decorator(plain: Callable[..., None]) -> Callable[..., Any]:
    def decorate(func: Any = None, override: bool = True) -> Any:
        if not callable(func):
            return lambda fn: decorate(fn, func if isinstance(func, bool) else override)
        plain(func, override)
        return func

    return decorate


register_cuda_postproc_callback = _decorator(register_cuda_postproc)
register_hip_postproc_callback = _decorator(register_hip_postproc)
register_c_postproc_callback = _decorator(register_c_postproc)
register_metal_postproc_callback = _decorator(register_metal_postproc)
