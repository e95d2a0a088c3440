"""Is a kernel right? Inputs made from its signature, a truth to compare with, and a bound for every element."""

from .check import Case, Check, check

__all__ = ["Case", "Check", "check"]
