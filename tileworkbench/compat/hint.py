"""What a template recommends: one configuration as carver describes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .tirx import DataType


class Rasterization:
    """The order in which blocks walk the grid."""

    panel_width_: int | None = None

    @property
    def panel_width(self) -> int:
        """Rows or columns of a panel; 1 where the order is the grid's own."""
        return self.panel_width_ or 1

    def __repr__(self) -> str:
        return f"<{type(self).__name__}({self.panel_width_ or ''})>"


class NoRasterization(Rasterization):
    """The grid's own order."""


class Rasterization2DRow(Rasterization):
    """Panels of rows, walked back and forth."""

    def __init__(self, panel_width: int = 4) -> None:
        self.panel_width_ = panel_width


class Rasterization2DColumn(Rasterization):
    """Panels of columns, walked back and forth."""

    def __init__(self, panel_width: int = 4) -> None:
        self.panel_width_ = panel_width


@dataclass
class IntrinInfo:
    """The types that a matrix instruction is wanted for."""

    in_dtype: str
    out_dtype: str
    trans_b: bool
    input_transform_kind: int = 0
    weight_transform_kind: int = 0
    trans_a: bool = False

    def is_input_8bit(self) -> bool:
        """Whether operands have eight bits."""
        return DataType(self.in_dtype).bits == 8

    @property
    def smooth_a(self) -> bool:
        """Whether A is stored in the order that its instruction reads."""
        return self.input_transform_kind >= 2

    @property
    def smooth_b(self) -> bool:
        """Whether B is stored in the order that its instruction reads."""
        return self.weight_transform_kind >= 2

    @property
    def inter_transform_a(self) -> bool:
        """Whether A is stored by tiles of its instruction."""
        return self.input_transform_kind >= 1

    @property
    def inter_transform_b(self) -> bool:
        """Whether B is stored by tiles of its instruction."""
        return self.weight_transform_kind >= 1


@dataclass
class Hint:
    """`block` extents of a block's output tile; `warp` (with matrix instructions) or `thread` extents of what one
    warp or thread makes; `rstep` how far a step goes along each reduced axis; `estimate_us` the model's answer."""

    block: list[int] = field(default_factory=list)
    thread: list[int] = field(default_factory=list)
    warp: list[int] = field(default_factory=list)
    rstep: list[int] = field(default_factory=list)
    reduce_thread: list[int] = field(default_factory=list)
    use_tc: bool = False
    rasterization_plan: Rasterization = field(default_factory=NoRasterization)
    pipeline_stage: int = 1
    use_async: bool = False
    vectorize: dict[str, int] = field(default_factory=dict)
    split_k_factor: int = 1
    shared_scope: str = "shared"
    block_reduction_depth: int | None = None
    arch: Any = None
    estimate_us: float | None = None

    @property
    def step(self) -> list[int]:
        """Strides between blocks along each axis: ones."""
        return [1] * len(self.block)

    @property
    def raxis_order(self) -> list[int]:
        """The reduced axes in the order of the loops."""
        return list(range(len(self.rstep)))

    def to_dict(self) -> dict[str, Any]:
        """The fields that say something."""
        shown: dict[str, Any] = {"block": self.block, "warp" if self.use_tc else "thread": self.warp or self.thread}
        shown["rstep"] = self.rstep
        for name, default in (("reduce_thread", []), ("use_tc", False), ("vectorize", {}), ("pipeline_stage", 1)):
            if getattr(self, name) != default:
                shown[name] = getattr(self, name)
        return shown

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Hint:
        """The hint of these fields."""
        return cls(**values)

    def __repr__(self) -> str:
        return str(self.to_dict())
