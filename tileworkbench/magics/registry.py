"""The kernels that cells of this session have made, by name."""

from __future__ import annotations

import difflib

from ..errors import OptionError
from ..views.result import Result


class Registry:
    """The newest result of every name, in order of their last run."""

    def __init__(self) -> None:
        self.results: dict[str, Result] = {}

    def keep(self, name: str, result: Result) -> None:
        self.results.pop(name, None)
        self.results[name] = result

    def find(self, name: str) -> Result:
        """OptionError, with the nearest name, for one that no cell has made."""
        if name in self.results:
            return self.results[name]
        near = difflib.get_close_matches(name, self.results, n=1, cutoff=0.4)
        known = ", ".join(self.results) or "none yet"
        raise OptionError(
            f"there is no kernel {name!r}", rule=f"kernels of this session: {known}",
            fix=f"did you mean {near[0]}?" if near else "%tile list",
        )  # fmt: skip

    def clear(self) -> int:
        count = len(self.results)
        self.results.clear()
        return count
