"""Faults that users reported for compilers of tile kernels, each a test named after its report.

`tl` is tile-ai/tilelang, `tr` triton-lang/triton, `cl` NVIDIA/cutlass; a number is an issue or a pull request there.
Values come from NumPy, torch or Python's own integers, never from this compiler."""
