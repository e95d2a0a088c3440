"""Tile operations, one file each: fields, effects, checks, implementations, emission and NumPy meaning."""
