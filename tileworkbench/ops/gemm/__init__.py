"""T.gemm: one file per instruction family beside the op itself."""

from .op import Gemm

__all__ = ["Gemm"]
