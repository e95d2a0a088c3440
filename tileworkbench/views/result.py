"""The object that a notebook cell shows for its kernel."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..checks.check import Check
from ..jitkernel.kernel import JITKernel, Plan
from ..jitkernel.profile import Timings
from ..jitkernel.trace import Trace
from .bench import bench_section
from .bundle import BUDGET, bundle, fit
from .document import MIME, CellSource, Document
from .html import to_html
from .kernel import DEFAULT, kernel_document
from .text import to_text

SHORT = ("summary", "check", "bench", "plan")  # the sections that a terminal shows


class Result:
    """A compiled kernel with what is known about it: it shows itself in a notebook, and reads as text anywhere else.

    `kernel` is what the cell bound; `check` and `bench` are there when they were asked for."""

    def __init__(
        self,
        kernel: JITKernel,
        check: Check | None = None,
        bench: Timings | None = None,
        show: Sequence[str] = DEFAULT,
        cell: CellSource | None = None,
    ) -> None:
        self.kernel, self.check, self.bench = kernel, check, bench
        self.show, self.cell = tuple(show), cell

    @property
    def plan(self) -> Plan:
        """What the planner decided for the kernel."""
        return self.kernel.plan

    @property
    def trace(self) -> Trace:
        """The kernel before and after each pass."""
        return self.kernel.trace

    @functools.cached_property
    def document(self) -> Document:
        """All that is shown, as plain records."""
        more = () if self.bench is None else (bench_section(self.kernel, self.bench),)
        return kernel_document(self.kernel, self.check, show=self.show, cell=self.cell, more=more)

    def widget(self) -> Any:
        """Controls that step through the passes; needs ipywidgets and a live kernel."""
        from .widget import steps_widget

        return steps_widget(self.kernel)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        document = self.document
        html = fit(document, to_html, BUDGET // 4)
        return {MIME: fit(document, Document.to_json, BUDGET // 2), "text/html": html, "text/plain": str(self)}

    def __str__(self) -> str:
        document = self.document
        sections = tuple(section for section in document.sections if section.id in SHORT)
        return to_text(Document(document.title, document.verdict, sections, None, document.diagnostics))

    __repr__ = __str__


class Shown:
    """A document as an object that shows itself: a failure, a comparison, a list."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return bundle(self.document)

    def __str__(self) -> str:
        return to_text(self.document)

    __repr__ = __str__
