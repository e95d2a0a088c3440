"""One name for each variable, buffer and channel of a kernel, stable over printings."""

from __future__ import annotations

from typing import Any


class Names:
    """Gives every object its own name, or that name with the first free suffix when another object has it."""

    def __init__(self) -> None:
        self._given: dict[int, str] = {}
        self._taken: set[str] = set()
        self._kept: list[Any] = []  # an identity must not be reused while it is a key here

    def __call__(self, thing: Any) -> str:
        """The name of a variable, buffer or channel."""
        name = self._given.get(id(thing))
        return self._give(thing) if name is None else name

    def knows(self, thing: Any) -> bool:
        """True when the object has been named."""
        return id(thing) in self._given

    def _give(self, thing: Any) -> str:
        base = name = thing.name or "unnamed"
        number = 0
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        self._given[id(thing)] = name
        self._kept.append(thing)
        return name
