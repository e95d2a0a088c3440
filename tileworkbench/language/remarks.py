"""The `annotations` argument of operations: a dict of TileLang's names for hints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .builder import require
from .faults import fault, shown

WSID = "tl.ws_op_id"  # under this name the annotations of an operation give its id in a role schedule


def remarks(annotations: Any) -> dict[str, Any]:
    """What `annotations` say, by name. Names without meaning here are let be."""
    if annotations is None:
        return {}
    if not isinstance(annotations, Mapping) or not all(isinstance(name, str) for name in annotations):
        raise fault(f"annotations={shown(annotations)}", "it is a dict of names and values", "leave it out")
    if WSID in annotations:
        require("annotations").mark(op_id(annotations[WSID]))
    return dict(annotations)


def op_id(name: Any) -> str:
    """An operation's id in a role schedule."""
    if not isinstance(name, str) or not name:
        raise fault(f"the id {shown(name)}", "an operation's id is a non-empty string", '"copy_A"')
    return name
