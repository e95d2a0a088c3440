"""Interactive workbench for GPU tile kernels."""
