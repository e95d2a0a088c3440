"""Builds generated text into device code, keeps it on disk, loads it and launches it: text and bytes, never IR."""
