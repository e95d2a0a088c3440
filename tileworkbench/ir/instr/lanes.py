"""Exchange between the lanes of a warp."""

from __future__ import annotations

from typing import ClassVar

from ..expr import Expr
from ..node import node
from .operands import Instr, Reg


@node
class Shuffle(Instr):
    """dst = src of another lane of the warp. kind: idx (lane), xor (mask), up, down (delta); inside groups of
    `width`."""

    scope: ClassVar[str] = "warp"
    dst: Reg
    src: Reg
    kind: str
    lane: Expr
    width: int = 32


@node
class Match(Instr):
    """dst (one uint32 register) from the bits of src (one register of 32 or 64 bits) over the warp. kind: any (the
    lanes with the lane's own bits) or all (all lanes where every lane has the same bits, else none)."""

    scope: ClassVar[str] = "warp"
    dst: Reg
    src: Reg
    kind: str


@node
class Vote(Instr):
    """dst (one register) = ballot (uint32 mask), any or all of `pred` over the warp."""

    scope: ClassVar[str] = "warp"
    dst: Reg
    kind: str
    pred: Expr
