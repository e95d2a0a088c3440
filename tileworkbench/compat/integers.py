"""Whole-number helpers that TileLang's scripts use on sizes."""

from __future__ import annotations


def cdiv(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


def next_power_of_2(x: int) -> int:
    """The least power of two that is at least x (x ≥ 1)."""
    return 1 << (x - 1).bit_length()
