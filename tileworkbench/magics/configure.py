"""%config TileWorkbench: the package's options as IPython's own settings."""

from __future__ import annotations

from typing import Any

from ..options import KNOBS, options

KINDS = {"bool": "Bool", "int": "Int"}


def configurable(shell: Any) -> Any:
    """A Configurable whose traits are the knobs: assigning one sets the option for the whole process."""
    import traitlets
    from traitlets.config import Configurable

    traits: dict[str, Any] = {"__doc__": "Options of tileworkbench."}
    for name, knob in KNOBS.items():
        kind = getattr(traitlets, KINDS.get(knob.kind, "Any"))
        traits[name] = kind(getattr(options, name), help=f"{knob.text} ({knob.accepts()})").tag(config=True)
    made = type("TileWorkbench", (Configurable,), traits)(parent=shell)

    def assign(change: Any) -> None:
        setattr(options, change["name"], change["new"])

    made.observe(assign, names=list(KNOBS))
    return made
