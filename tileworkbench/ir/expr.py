"""Scalar expressions and the buffers they read. Operators build IR; constants fold at once."""

from __future__ import annotations

from .equality import same
from .fold import (
    as_expr,
    binary,
    cast,
    ceildiv,
    compare,
    const,
    logical,
    logical_not,
    maximum,
    minimum,
    operands,
    promote,
    select,
    truth,
    unary,
)
from .terms import Binary, Bitcast, Buffer, Call, Cast, Compare, Const, Expr, Load, Select, Special, Unary, Value, Var

__all__ = [
    "Binary",
    "Bitcast",
    "Buffer",
    "Call",
    "Cast",
    "Compare",
    "Const",
    "Expr",
    "Load",
    "Select",
    "Special",
    "Unary",
    "Value",
    "Var",
    "as_expr",
    "binary",
    "cast",
    "ceildiv",
    "compare",
    "const",
    "logical",
    "logical_not",
    "maximum",
    "minimum",
    "operands",
    "promote",
    "same",
    "select",
    "truth",
    "unary",
]
