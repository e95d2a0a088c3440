"""The compiler's passes as they ran, each with its kernel as text, rendered when it is read."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

from ..ir.kernel import Kernel
from ..ir.text import show
from ..pipeline import Step


class TraceStep:
    """One pass: `name`, the `reason` for its place, `seconds`, and the kernel's text `before` and `after` it."""

    def __init__(self, step: Step, previous: TraceStep | None) -> None:
        self.step, self._previous = step, previous
        self.name, self.reason, self.seconds = step.name, step.reason, step.seconds

    @property
    def before(self) -> str:
        """The kernel as text before the pass."""
        # The same kernel is rendered once, as the step before it left it.
        return self._previous.after if self._previous is not None else show(self.step.before)

    @functools.cached_property
    def after(self) -> str:
        """The kernel as text after it."""
        return self.before if self.step.after is self.step.before else show(self.step.after)

    @property
    def changed(self) -> bool:
        """Whether the pass changed the text."""
        return self.before != self.after

    def __repr__(self) -> str:
        return f"<{self.name}: {self.seconds * 1e3:.1f} ms>"


class Trace(Sequence[TraceStep]):
    """The steps of one compilation in order; `trace["lower"]` is a step by name."""

    def __init__(self, kernel: Kernel, steps: Sequence[Step]) -> None:
        self.kernel = kernel
        self._steps: list[TraceStep] = []
        for step in steps:
            self._steps.append(TraceStep(step, self._steps[-1] if self._steps else None))

    @classmethod
    def joined(cls, traces: Iterable[Trace]) -> Trace:
        """The steps of several kernels in order."""
        every = list(traces)
        made = cls(every[0].kernel, ())
        made._steps = [step for trace in every for step in trace._steps]
        return made

    def __getitem__(self, key: int | slice | str) -> TraceStep | list[TraceStep]:  # type: ignore[override]
        if isinstance(key, str):
            found = next((step for step in self._steps if step.name == key), None)
            if found is None:
                raise KeyError(f"no pass {key!r}; the passes are {', '.join(step.name for step in self._steps)}")
            return found
        return self._steps[key]

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[TraceStep]:
        return iter(self._steps)

    def __repr__(self) -> str:
        return f"<trace of {self.kernel.name}: {', '.join(step.name for step in self._steps)}>"
