"""%%tilekernel and its line magics: `%load_ext tileworkbench`."""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext tileworkbench`; loading twice changes nothing."""
    from .extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext tileworkbench`."""
    from .extension import unload

    unload(shell)
