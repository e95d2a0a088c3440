"""KernelLaunchFrame.Current(): the running launch as an object, as macros outside the kernel's own text ask for it."""

from __future__ import annotations

from math import prod
from typing import Any

from . import launch
from .builder import current


class KernelLaunchFrame:
    """The launch whose text is being read. Only `Current` makes one."""

    @classmethod
    def Current(cls) -> KernelLaunchFrame | None:
        """None outside of every launch."""
        builder = current()
        return cls() if builder is not None and builder.launch is not None else None

    get_block_extent = staticmethod(launch.get_block_extent)
    get_block_extents = staticmethod(launch.get_block_extents)
    get_block_binding = staticmethod(launch.get_block_binding)
    get_block_bindings = staticmethod(launch.get_block_bindings)
    get_thread_extent = staticmethod(launch.get_thread_extent)
    get_thread_extents = staticmethod(launch.get_thread_extents)
    get_thread_binding = staticmethod(launch.get_thread_binding)
    get_thread_bindings = staticmethod(launch.get_thread_bindings)

    def get_num_threads(self) -> int:
        """Threads of a block."""
        return prod(launch.get_thread_extents())

    @property
    def num_threads(self) -> int:
        """Threads of a block."""
        return self.get_num_threads()

    @property
    def blocks(self) -> list[Any]:
        """The block indices, x first."""
        return launch.get_block_bindings()

    @property
    def threads(self) -> list[Any]:
        """The thread indices, x first."""
        return launch.get_thread_bindings()
