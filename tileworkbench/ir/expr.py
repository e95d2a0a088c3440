"""Scalar expressions and the buffers they read. Operators build IR; constants fold at once."""

from __future__ import annotations

from .constants import as_expr, const, holds
from .equality import same
from .fold import (
    binary,
    cast,
    ceildiv,
    compare,
    logical,
    logical_not,
    maximum,
    minimum,
    number_type,
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
    "holds",
    "logical",
    "logical_not",
    "maximum",
    "minimum",
    "number_type",
    "operands",
    "promote",
    "same",
    "select",
    "truth",
    "unary",
]
