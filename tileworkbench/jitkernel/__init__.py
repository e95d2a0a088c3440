"""What a user holds: kernels compiled once per signature, launched, inspected, checked and profiled."""

from .compiling import compile, par_compile
from .decorator import JITFunction, jit
from .kernel import JITKernel
from .simulating import simulate

__all__ = ["JITFunction", "JITKernel", "compile", "jit", "par_compile", "simulate"]
