"""TVM's context of passes: settings of what `tilelang.lower` makes inside the block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from typing import Any

from ..jitkernel.passconfig import key_name


class PassContext:
    """`with PassContext(config={…}):` holds pass_configs, under their names in `config`. Passes and instruments are
    TVM's own: they are kept, and change nothing."""

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[Any] | None = None,
        config: Mapping[Any, Any] | None = None,
    ) -> None:
        self.opt_level, self.instruments = opt_level, list(instruments or ())
        self.required_pass, self.disabled_pass = list(required_pass or ()), list(disabled_pass or ())
        self.config = {key_name(key): value for key, value in (config or {}).items()}
        self._tokens: list[Token[PassContext | None]] = []

    def __enter__(self) -> PassContext:
        self._tokens.append(_innermost.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _innermost.reset(self._tokens.pop())

    @staticmethod
    def current() -> PassContext:
        """The innermost block's, or one without settings."""
        return _innermost.get() or PassContext()


_innermost: ContextVar[PassContext | None] = ContextVar("tilelang_pass_context", default=None)
