"""A device function of ours: its text, what it calls, and the feature of the target it needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    text: str
    calls: tuple[str, ...] = ()
    needs_feature: str | None = None
