"""The thread machine: thread-level kernels on NumPy, exact about order. It knows instructions, no op and no pass."""

from .faults import Fault
from .launch import ThreadRun, run
from .rules import RULES, Rule

__all__ = ["RULES", "Fault", "Rule", "ThreadRun", "run"]
