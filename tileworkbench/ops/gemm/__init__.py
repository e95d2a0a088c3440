"""T.gemm and T.gemm_sp: one file per instruction family beside the operations themselves."""

from .op import Gemm
from .sparse import GemmSparse

__all__ = ["Gemm", "GemmSparse"]
