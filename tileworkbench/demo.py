"""The main job of the README: compile the first tutorial's kernels, run them, check them, write a report."""

from __future__ import annotations

from . import doctor


def main() -> int:
    """Prints what the machine has. The compiler is not in this build yet, and this says so."""
    print(doctor.text(doctor.examine()))
    print("\nThe compiler is not in this build yet, so there is nothing to compile or run.")
    return 0
