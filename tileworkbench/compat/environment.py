"""TileLang's environment names and cache switches. Those with a meaning here are read when they are asked for and set
the options of the same meaning; the others are accepted and listed by `ignored()`."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from typing import Any

from ..options import options
from ..runtime import cache

VERSION = "0.1.15"  # the release whose public names this is
logger = logging.getLogger("tilelang")

# TileLang's name → (our option, how its text is read).
MEANT: dict[str, tuple[str, Callable[[str], Any]]] = {
    "TILELANG_CACHE_DIR": ("cache_dir", str),
    "TILELANG_DISABLE_CACHE": ("cache", lambda text: not _yes(text)),
    "TILELANG_DEFAULT_TARGET": ("target", str),
    "TILELANG_COMPILE_TIMEOUT_SECONDS": ("compile_timeout", float),
}
DEFAULTS = {
    "TILELANG_TMP_DIR": "", "TILELANG_KERNEL_CACHE_USE_LIB_STAMP": "0", "TILELANG_EXECUTION_BACKEND": "auto",
    "TILELANG_VERBOSE": "0", "TILELANG_PRINT_ON_COMPILATION": "0", "TILELANG_JIT_DIAGNOSTICS": "0",
    "TILELANG_CLEANUP_TEMP_FILES": "1", "TILELANG_HIP_SAVE_TEMP_FILES": "0", "TILELANG_PASS_DIFF": "0",
    "TILELANG_PASS_DIFF_OUTPUT": "", "TL_LOWER_TRACE": "0", "TL_LOWER_TRACE_DIR": "", "TILELANG_PASS_PROFILE": "0",
    "TILELANG_PASS_PROFILE_THRESHOLD_MS": "0", "TILELANG_ENABLE_IR_SPAN": "1", "TILELANG_LAYOUT_COST_MODEL": "",
    "TILELANG_ENABLE_DATA_RACE_CHECK": "0", "TVM_IMPORT_PYTHON_PATH": "", "TVM_LIBRARY_PATH": "",
    "TL_CUTLASS_PATH": "", "TL_COMPOSABLE_KERNEL_PATH": "", "TL_TEMPLATE_PATH": "", "SKIP_LOADING_TILELANG_SO": "0",
}  # fmt: skip
TUNER = {
    "TILELANG_AUTO_TUNING_DISABLE_CACHE": "0", "TILELANG_AUTO_TUNING_CPU_UTILITIES": "0.9",
    "TILELANG_AUTO_TUNING_CPU_COUNTS": "-1", "TILELANG_AUTO_TUNING_MAX_CPU_COUNT": "-1",
}  # fmt: skip


def _yes(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "yes", "on")


def apply_environment() -> list[str]:
    """Sets our options from TileLang's environment names, where the user has not set ours; gives those that it set."""
    made = []
    for name, (option, read) in MEANT.items():
        text = os.environ.get(name)
        if text and options.origin(option) == "default":
            setattr(options, option, read(text))
            made.append(option)
    return made


def ignored() -> list[str]:
    """TileLang's environment names that are set and change nothing here."""
    return sorted(name for name in DEFAULTS if os.environ.get(name))


def enable_cache() -> None:
    """Built kernels are kept on disk."""
    options.cache = True


def disable_cache() -> None:
    """Built kernels are not kept on disk."""
    options.cache = False


def is_cache_enabled() -> bool:
    return bool(options.cache)


def clear_cache() -> None:
    """Empties the disk cache of built kernels."""
    cache.default().clear()


class Environment:
    """`tilelang.env`: TileLang's settings by name, with its methods."""

    def __getattr__(self, name: str) -> Any:
        known = {**DEFAULTS, **TUNER}
        if name in MEANT:
            value = getattr(options, MEANT[name][0])
            return str(value) if name == "TILELANG_CACHE_DIR" else value
        if name in known:
            return os.environ.get(name, known[name])
        raise AttributeError(f"tilelang.env has no setting {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in MEANT:
            option, read = MEANT[name]
            setattr(options, option, read(str(value)))
        else:
            os.environ[name] = str(value)

    enable_cache = staticmethod(enable_cache)
    disable_cache = staticmethod(disable_cache)
    is_cache_enabled = staticmethod(is_cache_enabled)

    def is_cache_globally_disabled(self) -> bool:
        return not options.cache

    def is_autotune_cache_disabled(self) -> bool:
        return _yes(self.TILELANG_AUTO_TUNING_DISABLE_CACHE)

    def is_print_on_compilation_enabled(self) -> bool:
        return _yes(self.TILELANG_PRINT_ON_COMPILATION)

    def get_default_target(self) -> Any:
        return options.target

    def get_default_execution_backend(self) -> str:
        return str(self.TILELANG_EXECUTION_BACKEND)

    def get_default_verbose(self) -> bool:
        return _yes(self.TILELANG_VERBOSE)


env = Environment()


def set_log_level(level: str | int) -> None:
    """The level of the logger named tilelang."""
    logger.setLevel(level.upper() if isinstance(level, str) else level)


def deprecated(method_name: str, new_method_name: str, *_: Any) -> Callable[[Any], Any]:
    """Marks a function of the user's as superseded: calling it warns."""

    def decorate(fn: Any) -> Any:
        def warned(*args: Any, **named: Any) -> Any:
            warnings.warn(f"{method_name} is deprecated, use {new_method_name}", DeprecationWarning, stacklevel=2)
            return fn(*args, **named)

        return warned

    return decorate


def __getattr__(name: str) -> Any:
    """`tilelang.env` is a module as well as the settings object."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(env, name)
