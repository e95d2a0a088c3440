"""What the printer of a C dialect must say; the shared printer asks for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ..ir.expr import Buffer
from ..ir.instr import LoadMem, StoreMem
from ..ir.stmt import Stmt
from .functions import Function

Row = Callable[[Any, Any], None]


class Dialect:
    """Tables and words of one dialect. `rows`: instruction class → function that writes it; `refused`: rows that it
    cannot have, and why; `functions`: device functions by name."""

    rows: ClassVar[Mapping[Any, Row]] = {}
    refused: ClassVar[Mapping[type, str]] = {}
    functions: Mapping[str, Function] = {}

    def load_function(self, s: LoadMem, size: int) -> str:
        """The function that loads `size` bytes as this load wants it."""
        return f"tw_load{size}"

    def store_function(self, s: StoreMem, size: int) -> str:
        return f"tw_store{size}"

    def widest(self, buffer: Buffer) -> int:
        """Bytes of the widest access to a buffer."""
        return 16

    def elected(self, who: str) -> str:
        """The condition that holds for one lane of the warp, or one thread of the role or block."""
        raise NotImplementedError

    def role_begins(self, body: tuple[Stmt, ...]) -> None:
        """Called at the head of each role's text."""

    def cluster_rank(self) -> str:
        raise NotImplementedError

    def block_index(self, i: int) -> str:
        raise NotImplementedError

    def grid_size(self, axis: str) -> str:
        raise NotImplementedError

    def thread_index(self) -> str:
        raise NotImplementedError

    def warp_text(self) -> str:
        raise NotImplementedError

    def shared_array(self) -> str:
        raise NotImplementedError

    def shared_address(self) -> str:
        raise NotImplementedError

    def shared_pointer(self, kind: str) -> str:
        return f"{kind}*"

    def map_parameter(self, name: str) -> str:
        raise NotImplementedError

    def preamble(self) -> list[str]:
        return []

    def signature(self) -> str:
        raise NotImplementedError

    def clock(self) -> str:
        raise NotImplementedError

    def printf(self) -> str:
        raise NotImplementedError

    def trap_text(self) -> str:
        raise NotImplementedError
