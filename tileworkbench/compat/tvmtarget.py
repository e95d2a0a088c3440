"""TVM's target object, as kernels and tests make it, over this package's targets."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

from ..options import options
from ..target import Target as OwnTarget

KINDS = {"cuda": "cuda", "hip": "hip", "cpu": "c"}


class Target:
    """`Target("cuda -arch=sm_90")`, `Target({"kind": "cuda", "arch": "sm_90"})` or a kind alone; `host` is accepted.
    Its `kind.name`, `arch` and `attrs` are TVM's. In a `with` block it is the target that is compiled for."""

    def __init__(self, target: Any, host: Any = None) -> None:
        self.own: OwnTarget = target.own if isinstance(target, Target) else OwnTarget.of(target)
        named = isinstance(target, Mapping) or (isinstance(target, str) and "-" in target)
        # A kind without an architecture means the card of this machine, whatever it is.
        self.arch = self.own.name if named or self.own.dialect != "cpu" else ""
        self.kind = SimpleNamespace(name=target if target in ("llvm", "c") else KINDS[self.own.dialect])
        self.host = host
        self._blocks: list[AbstractContextManager[Any]] = []

    @property
    def attrs(self) -> dict[str, Any]:
        return {"arch": self.arch, "thread_warp_size": self.own.arch.warp_size}

    @property
    def keys(self) -> list[str]:
        return [self.kind.name, *(["gpu"] if self.own.dialect != "cpu" else ["cpu"])]

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost block, or None."""
        return None if options.origin("target") == "default" else Target(options.target)

    @staticmethod
    def from_device(device: Any) -> Target:
        return Target("auto")

    @staticmethod
    def canon_target(target: Any) -> Target | None:
        return None if target is None else Target(target)

    def __enter__(self) -> Target:
        # "c" and "llvm" say more than the CPU target: a block is one thread there.
        host = self.kind.name in ("c", "llvm")
        block = options(target=self.kind.name if host else str(self.own))
        block.__enter__()
        self._blocks.append(block)
        return self

    def __exit__(self, *problem: Any) -> None:
        self._blocks.pop().__exit__(*problem)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and other.own == self.own

    def __hash__(self) -> int:
        return hash(self.own)

    def __str__(self) -> str:
        return f"{self.kind.name} -arch={self.arch}" if self.arch else self.kind.name

    __repr__ = __str__
