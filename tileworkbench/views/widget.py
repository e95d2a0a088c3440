"""Live controls around a result: they choose a document, and an Output holds its record like any other output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import MissingDependency
from ..jitkernel.kernel import JITKernel
from .blocks import Code, Diff
from .bundle import bundle
from .document import Document, Section, Verdict


def steps_widget(kernel: JITKernel) -> Any:
    """Back, a choice of pass, and forward, above the view of what that pass changed. MissingDependency without
    ipywidgets. Buttons take the place of a slider, whose arrow keys some hosts keep to themselves."""
    try:
        import ipywidgets
    except ImportError:
        raise MissingDependency(
            "ipywidgets is not installed", rule="a widget needs it; the result itself does not",
            fix="pip install ipywidgets",
        ) from None  # fmt: skip
    pages = step_documents(kernel)
    output = ipywidgets.Output()
    choice = ipywidgets.Dropdown(
        options=[(page.title, number) for number, page in enumerate(pages)], description="pass",
        layout=ipywidgets.Layout(width="auto"),
    )  # fmt: skip
    back, forth = (
        ipywidgets.Button(description=text, tooltip=tip) for text, tip in (("◂", "pass before"), ("▸", "next pass"))
    )

    def draw(_: Any = None) -> None:
        # Assigned whole: the same on a callback's thread as on the main one.
        data = bundle(pages[choice.value])
        output.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)
        back.disabled, forth.disabled = choice.value == 0, choice.value == len(pages) - 1

    def step(by: int) -> None:
        choice.value = min(max(choice.value + by, 0), len(pages) - 1)

    back.on_click(lambda _: step(-1))
    forth.on_click(lambda _: step(1))
    choice.observe(draw, names="value")
    draw()
    return ipywidgets.VBox([ipywidgets.HBox([back, choice, forth]), output])


def step_documents(kernel: JITKernel) -> Sequence[Document]:
    """The kernel as it was read, then each pass that changed it."""
    trace = kernel.trace
    first = next((step.before for step in trace), kernel.source)
    pages = [page("as it was read", f"the text of {kernel.name}", Code("python", first))]
    for step in trace:
        if step.changed:
            pages.append(page(step.name, step.reason, Diff(step.before, step.after)))
    return pages


def page(title: str, reason: str, block: Code | Diff) -> Document:
    return Document(title, Verdict(title, reason), (Section("ir", "Steps", (block,)),))
