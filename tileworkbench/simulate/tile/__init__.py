"""The tile machine: what a tile- or planned-level kernel means, on NumPy, vectorised over blocks."""

from .machine import Run, run
from .program import Event

__all__ = ["Event", "Run", "run"]
