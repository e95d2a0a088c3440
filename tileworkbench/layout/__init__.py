"""Layouts on plain integers: shared tiles, register fragments, loops and matrix instructions. Imports only NumPy."""

from tileworkbench.layout.algebra import (
    complement,
    composition,
    left_inverse,
    logical_divide,
    logical_product,
    right_inverse,
)
from tileworkbench.layout.atoms import Atom
from tileworkbench.layout.banks import BankReport, access_conflicts, bank_conflicts
from tileworkbench.layout.convert import Conversion, conversion, local_registers
from tileworkbench.layout.descriptor import Descriptor, operand_offsets, wgmma_descriptor
from tileworkbench.layout.distribution import Distribution
from tileworkbench.layout.fragment import Fragment, Mode, reg_mode, replicated, same, thread_mode
from tileworkbench.layout.function_fragment import FunctionFragment, fit_modes, fragment_from_function
from tileworkbench.layout.layout import Layout, coalesce, concat
from tileworkbench.layout.ldmatrix import MatrixMove, keeps_rows, matrix_fragment, matrix_move
from tileworkbench.layout.mfma import mfma_atoms
from tileworkbench.layout.mma import mma_atoms
from tileworkbench.layout.mma_sp import metadata_elements, metadata_fragment, mma_sp_atoms
from tileworkbench.layout.parallel import LinearLoop, loop_layout, padded_loop
from tileworkbench.layout.shared import FunctionLayout, SharedLayout, StridedLayout, SwizzledLayout
from tileworkbench.layout.swizzle import ComposedLayout, Swizzle
from tileworkbench.layout.tiles import (
    accumulator,
    find_atoms,
    metadata,
    operand_a,
    operand_b,
    wgmma_accumulator,
    wgmma_operand_a,
)
from tileworkbench.layout.tma import TmaBox, TmaBoxes, box_offsets, swizzle_span, tma_boxes
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
from tileworkbench.layout.vector import global_vector_width, shared_vector_width, vector_width
from tileworkbench.layout.views import reshape_fragment, reshape_shared
from tileworkbench.layout.wgmma import wgmma_atom, wgmma_atoms, wgmma_n

__all__ = [
    "Atom",
    "BankReport",
    "ComposedLayout",
    "Conversion",
    "Descriptor",
    "Distribution",
    "Fragment",
    "FunctionFragment",
    "FunctionLayout",
    "Layout",
    "LinearLoop",
    "MatrixMove",
    "Mode",
    "SharedLayout",
    "StridedLayout",
    "Swizzle",
    "SwizzledLayout",
    "TmaBox",
    "TmaBoxes",
    "access_conflicts",
    "accumulator",
    "bank_conflicts",
    "box_offsets",
    "coalesce",
    "complement",
    "composition",
    "concat",
    "condense",
    "conversion",
    "expand",
    "find_atoms",
    "fit_modes",
    "fragment_from_function",
    "global_vector_width",
    "keeps_rows",
    "left_inverse",
    "local_registers",
    "logical_divide",
    "logical_product",
    "loop_layout",
    "matrix_fragment",
    "matrix_move",
    "metadata",
    "metadata_elements",
    "metadata_fragment",
    "mfma_atoms",
    "mma_atoms",
    "mma_sp_atoms",
    "offset_threads",
    "operand_a",
    "operand_b",
    "operand_offsets",
    "padded_loop",
    "permute_dims",
    "reduce_dim",
    "reg_mode",
    "repeat",
    "replicate",
    "replicated",
    "reshape_fragment",
    "reshape_shared",
    "right_inverse",
    "same",
    "shared_vector_width",
    "split_mode",
    "swizzle_span",
    "thread_mode",
    "tile",
    "tma_boxes",
    "vector_width",
    "wgmma_accumulator",
    "wgmma_atom",
    "wgmma_atoms",
    "wgmma_descriptor",
    "wgmma_n",
    "wgmma_operand_a",
    "with_threads",
]
