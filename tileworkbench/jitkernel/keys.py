"""Arguments of a call as parts of the key that its kernel is kept by."""

from __future__ import annotations

from typing import Any

from ..language.parameters import is_array


def key_of(value: Any) -> Any:
    """An argument as part of a key: of an array all that its kernel can hang on; of a value its type too (1 is not
    True, and neither is 1.0)."""
    if is_array(value):
        strides = getattr(value, "strides", None)
        steps = tuple(value.stride()) if callable(getattr(value, "stride", None)) else strides
        return tuple(value.shape), str(value.dtype), steps
    if isinstance(value, list | tuple):
        return type(value).__name__, tuple(key_of(v) for v in value)
    if isinstance(value, dict):
        return "dict", tuple((k, key_of(v)) for k, v in value.items())
    return type(value), value


def is_hashable(value: Any) -> bool:
    """Whether a value can be part of a key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True
