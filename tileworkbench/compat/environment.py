"""TileLang's environment names and cache switches. Those with a meaning here are read when they are asked for, as other
names of our options; the others are accepted and listed by `ignored()`."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from typing import Any

from ..options import options
from ..runtime import cache
from .settings import GUESTS, Environment, Setting, env

VERSION = "0.1.15"  # the release whose public names this is
logger = logging.getLogger("tilelang")


def apply_environment() -> None:
    """From now on TileLang's environment names are read, where the user has not set ours."""
    options.read_also(GUESTS)


def forget_environment() -> None:
    """They are not read any more."""
    options.read_also({})


def ignored() -> list[str]:
    """TileLang's environment names that are set and change nothing here."""
    idle = {s.key for s in vars(Environment).values() if isinstance(s, Setting) and not (s.option or s.shared)}
    ours = {name for name in idle if name.startswith(("TILELANG_", "TL_", "TVM_"))}
    return sorted(name for name in ours if os.environ.get(name))


enable_cache, disable_cache, is_cache_enabled = env.enable_cache, env.disable_cache, env.is_cache_enabled


def clear_cache() -> None:
    """Empties the disk cache of built kernels."""
    cache.default().clear()


def set_log_level(level: str | int) -> None:
    """The level of the logger named tilelang."""
    logger.setLevel(level.upper() if isinstance(level, str) else level)


def deprecated_warning(method_name: str, new_method_name: str, *_: Any) -> None:
    """Warns that a name is superseded."""
    warnings.warn(f"{method_name} is deprecated, use {new_method_name}", DeprecationWarning, stacklevel=3)


def deprecated(method_name: str, new_method_name: str, *_: Any) -> Callable[[Any], Any]:
    """Marks a function of the user's as superseded: calling it warns."""

    def decorate(fn: Any) -> Any:
        def warned(*args: Any, **named: Any) -> Any:
            deprecated_warning(method_name, new_method_name)
            return fn(*args, **named)

        return warned

    return decorate


def __getattr__(name: str) -> Any:
    """`tilelang.env` is a module as well as the settings object."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(env, name)
