"""`tilelang.env`: TileLang's settings, each read from its environment name whenever it is asked for. Those with a
meaning here are our options under other names; the others keep what they are given and change nothing."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from typing import Any

from ..errors import OptionError
from ..options import Guest, options

NO_LIMIT = 1e9  # seconds, for a time-out of 0


def yes(text: Any) -> bool:
    """Whether a setting's text switches it on."""
    return str(text).strip().lower() in ("1", "true", "yes", "on")


def target_of(text: str) -> Any:
    """A target's name, or the description that JSON text holds."""
    if not text.strip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise OptionError(
            f"TILELANG_DEFAULT_TARGET={text!r}",
            rule="it is a target's name, or a description of one. Use JSON syntax",
            fix='{"kind": "cuda", "arch": "sm_90a"}',
        ) from None


def timeout_of(text: str) -> float:
    """Seconds; 0 means without end."""
    return float(text) or NO_LIMIT


# Our option → TileLang's name, and how its text is read.
GUESTS = {
    "cache_dir": Guest("TILELANG_CACHE_DIR", str),
    "cache": Guest("TILELANG_DISABLE_CACHE", lambda text: not yes(text)),
    "target": Guest("TILELANG_DEFAULT_TARGET", target_of),
    "compile_timeout": Guest("TILELANG_COMPILE_TIMEOUT_SECONDS", timeout_of),
}


class Setting:
    """A descriptor: the value that was assigned, else the environment's, else the default."""

    def __init__(self, default: Any = None, key: str = "", option: str = "", shared: bool = False) -> None:
        self.default, self.key, self.option, self.shared = default, key, option, shared
        self.assigned: Any = None

    def __set_name__(self, owner: type, name: str) -> None:
        self.key = self.key or name

    def __get__(self, instance: Any, owner: type) -> Any:
        if self.option == "cache_dir":
            return str(options.cache_dir)
        if self.assigned is not None:
            return self.assigned
        if self.key in os.environ:
            return os.environ[self.key]
        return self.default() if callable(self.default) else self.default

    def __set__(self, instance: Any, value: Any) -> None:
        self._forced_value = value

    @property
    def _forced_value(self) -> Any:
        """TileLang's name of what was assigned; None takes it back."""
        return self.assigned

    @_forced_value.setter
    def _forced_value(self, value: Any) -> None:
        if self.option:
            if value is None:
                delattr(options, self.option)
            else:
                setattr(
                    options, self.option, value if isinstance(value, dict) else GUESTS[self.option].read(str(value))
                )
        if self.shared and value is not None:  # the search reads it where it runs
            os.environ[self.key] = str(value)
        self.assigned = value


def _switch(name: str) -> Callable[[Any], bool]:
    return lambda settings: yes(getattr(settings, name))


class Environment:
    """TileLang's settings by name, with its methods."""

    TILELANG_CACHE_DIR = Setting(option="cache_dir")
    TILELANG_DISABLE_CACHE = Setting("0", option="cache")
    TILELANG_DEFAULT_TARGET = Setting("auto", option="target")
    TILELANG_COMPILE_TIMEOUT_SECONDS = Setting("", option="compile_timeout")
    TILELANG_AUTO_TUNING_DISABLE_CACHE = Setting("0", shared=True)
    TILELANG_AUTO_TUNING_CPU_UTILITIES = Setting("0.9", shared=True)
    TILELANG_AUTO_TUNING_CPU_COUNTS = Setting("-1", shared=True)
    TILELANG_AUTO_TUNING_MAX_CPU_COUNT = Setting("-1", shared=True)
    # Without a meaning here.
    TILELANG_TMP_DIR = Setting(lambda: os.path.join(options.cache_dir, "tmp"))
    TILELANG_KERNEL_CACHE_USE_LIB_STAMP = Setting("0")
    TILELANG_EXECUTION_BACKEND = Setting("auto")
    TILELANG_DEFAULT_EXECUTION_BACKEND = Setting("auto", key="TILELANG_EXECUTION_BACKEND")
    TILELANG_VERBOSE = Setting("0")
    TILELANG_DEFAULT_VERBOSE = Setting("0", key="TILELANG_VERBOSE")
    TILELANG_PRINT_ON_COMPILATION = Setting("1")
    TILELANG_JIT_DIAGNOSTICS = Setting("0")
    TILELANG_CLEANUP_TEMP_FILES = Setting("1")
    TILELANG_HIP_SAVE_TEMP_FILES = Setting("0")
    TILELANG_PASS_DIFF = Setting("0")
    TILELANG_PASS_DIFF_OUTPUT = Setting("tmp/pass_diff_output")
    TL_LOWER_TRACE = Setting("0")
    TL_LOWER_TRACE_DIR = Setting(os.path.join(".", "tmp", "lower_trace_dir"))
    TILELANG_PASS_PROFILE = Setting("0")
    TILELANG_PASS_PROFILE_THRESHOLD_MS = Setting("0")
    TILELANG_ENABLE_IR_SPAN = Setting("1")
    TILELANG_LAYOUT_COST_MODEL = Setting()
    TILELANG_ENABLE_DATA_RACE_CHECK = Setting("0")
    TVM_IMPORT_PYTHON_PATH = Setting()
    TVM_PYTHON_PATH = Setting(key="TVM_IMPORT_PYTHON_PATH")
    TVM_LIBRARY_PATH = Setting()
    TL_CUTLASS_PATH = Setting()
    CUTLASS_INCLUDE_DIR = Setting(key="TL_CUTLASS_PATH")
    TL_COMPOSABLE_KERNEL_PATH = Setting()
    COMPOSABLE_KERNEL_INCLUDE_DIR = Setting(key="TL_COMPOSABLE_KERNEL_PATH")
    TL_TEMPLATE_PATH = Setting()
    TILELANG_TEMPLATE_PATH = Setting(key="TL_TEMPLATE_PATH")
    SKIP_LOADING_TILELANG_SO = Setting("0")
    CUDA_HOME = Setting("")
    ROCM_HOME = Setting("", key="ROCM_PATH")

    is_cache_globally_disabled = _switch("TILELANG_DISABLE_CACHE")
    should_use_kernel_cache_lib_stamp = _switch("TILELANG_KERNEL_CACHE_USE_LIB_STAMP")
    is_autotune_cache_disabled = _switch("TILELANG_AUTO_TUNING_DISABLE_CACHE")
    is_print_on_compilation_enabled = _switch("TILELANG_PRINT_ON_COMPILATION")
    should_cleanup_temp_files = _switch("TILELANG_CLEANUP_TEMP_FILES")
    is_jit_diagnostics_enabled = _switch("TILELANG_JIT_DIAGNOSTICS")
    is_pass_profile_enabled = _switch("TILELANG_PASS_PROFILE")
    is_span_enable = _switch("TILELANG_ENABLE_IR_SPAN")
    get_default_verbose = _switch("TILELANG_VERBOSE")

    def enable_cache(self) -> None:
        """Built kernels are kept on disk, unless the environment says that they never are."""
        options.cache = not self.is_cache_globally_disabled()

    def disable_cache(self) -> None:
        """Built kernels are not kept on disk."""
        options.cache = False

    def is_cache_enabled(self) -> bool:
        return bool(options.cache)

    def get_default_target(self) -> Any:
        """The target's name, or its description as a dict."""
        value = self.TILELANG_DEFAULT_TARGET
        return target_of(value) if isinstance(value, str) else value

    def get_default_execution_backend(self) -> str:
        return str(self.TILELANG_DEFAULT_EXECUTION_BACKEND)

    def get_compile_timeout_seconds(self) -> float | None:
        """Seconds; None without a limit."""
        text = str(self.TILELANG_COMPILE_TIMEOUT_SECONDS).strip()
        return (_seconds("TILELANG_COMPILE_TIMEOUT_SECONDS", text) if text else 0.0) or None

    def get_pass_profile_threshold_ms(self) -> float:
        """Milliseconds; nothing here is left out below it."""
        text = str(self.TILELANG_PASS_PROFILE_THRESHOLD_MS).strip()
        return _seconds("TILELANG_PASS_PROFILE_THRESHOLD_MS", text) if text else 0.0

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"tilelang.env has no setting {name!r}")


def _seconds(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise OptionError(f"{name}={text!r}", rule="it must be a finite non-negative number", fix="0")
    return value


env = Environment()
