"""What one compilation gives."""

from __future__ import annotations

from dataclasses import dataclass

from ..codegen.source import Source
from ..errors import MissingDependency
from ..runtime.binary import Binary


@dataclass(frozen=True)
class Made:
    """`binary` is None where the device compiler is missing; `missing` then says what it is and how to get it."""

    source: Source
    binary: Binary | None
    missing: MissingDependency | None = None
