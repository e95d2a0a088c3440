"""What all statements share by which a kernel controls the hardware itself."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import TargetError
from ..ir.arith import Facts
from ..ir.op import Access, Choice, Impl, Op
from ..target import Target


class ManualOp(Op):
    """A statement that names one instruction, of targets with `feature`."""

    __slots__ = ()
    feature: ClassVar[str] = ""

    @property
    def manual(self) -> bool:
        return True

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        """The one instruction that the statement names, where the target has it."""
        if not target.has(self.feature):
            raise TargetError(
                f"T.{self.name}",
                rule=f"{target.name} has no {self.feature.replace('_', ' ')}",
                fix="compile for sm_90a, or leave synchronisation to the compiler",
                loc=self.loc,
            )
        return Choice((Impl(self.name, "alu"),))


class Ordering(ManualOp):
    """A statement that touches no tile: it orders what others do."""

    __slots__ = ()

    def effects(self) -> tuple[Access, ...]:
        return ()

    def run(self, env: Any) -> None:
        """Nothing: on the tile machine every copy and product is done when its statement ends."""
