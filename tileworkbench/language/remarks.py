"""The `annotations` argument of operations: a dict of TileLang's names for hints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .faults import fault, shown


def remarks(annotations: Any) -> dict[str, Any]:
    """What `annotations` say, by name. Names without meaning here are let be."""
    if annotations is None:
        return {}
    if not isinstance(annotations, Mapping) or not all(isinstance(name, str) for name in annotations):
        raise fault(f"annotations={shown(annotations)}", "it is a dict of names and values", "leave it out")
    return dict(annotations)
