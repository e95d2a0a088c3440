"""Planned level: roles as agents, channels as rings of versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

WAITING: dict[type, Callable[..., Any]] = {}
