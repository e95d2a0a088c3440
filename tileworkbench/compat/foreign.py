"""Names that belong to TileLang's own compiler. They can be imported, compared and passed along; whatever would use one
is refused with the reason."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import TargetError


class ForeignName(TargetError):
    """A name of TileLang's or TVM's inside was used."""


class Foreign:
    """Stands for `path`; `needs` says what it would take."""

    def __init__(self, path: str, needs: str) -> None:
        self.__dict__["_path"], self.__dict__["_needs"] = path, needs

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ForeignName(
            f"{self._path} was used",
            rule=f"it needs {self._needs}",
            fix="kernels need none of it; read `kernel.trace` for the passes and `kernel.plan` for what they decided",
        )

    __call__ = __iter__ = __getitem__ = __enter__ = __len__ = __mro_entries__ = __bool__ = _refuse
    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __lt__ = __int__ = _refuse

    def __setattr__(self, name: str, value: Any) -> None:
        self._refuse()

    def __exit__(self, *_: object) -> None:
        """Never reached: __enter__ refuses."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Foreign(f"{self._path}.{name}", self._needs)

    def __instancecheck__(self, value: Any) -> bool:
        return False

    def __or__(self, other: Any) -> Any:
        """In annotations."""
        return other

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"<{self._path}: needs {self._needs}>"
