"""Layouts on plain integers: shared tiles, register fragments, loops and matrix instructions. Imports only NumPy."""

from tileworkbench.layout.distribution import Distribution
from tileworkbench.layout.fragment import (
    Fragment,
    Mode,
    reg_mode,
    replicated,
    same,
    thread_mode,
)
from tileworkbench.layout.function_fragment import (
    FunctionFragment,
    fit_modes,
    fragment_from_function,
)
from tileworkbench.layout.parallel import LinearLoop, loop_layout
from tileworkbench.layout.shared import (
    FunctionLayout,
    SharedLayout,
    StridedLayout,
    SwizzledLayout,
)
from tileworkbench.layout.transform import (
    condense,
    expand,
    offset_threads,
    permute_dims,
    reduce_dim,
    repeat,
    replicate,
    split_mode,
    tile,
    with_threads,
)

__all__ = [
    "Distribution",
    "Fragment",
    "FunctionFragment",
    "FunctionLayout",
    "LinearLoop",
    "Mode",
    "SharedLayout",
    "StridedLayout",
    "SwizzledLayout",
    "condense",
    "expand",
    "fit_modes",
    "fragment_from_function",
    "loop_layout",
    "offset_threads",
    "permute_dims",
    "reduce_dim",
    "reg_mode",
    "repeat",
    "replicate",
    "replicated",
    "same",
    "split_mode",
    "thread_mode",
    "tile",
    "with_threads",
]
