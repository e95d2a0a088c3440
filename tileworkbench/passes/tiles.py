"""Shared tiles and what is seen through views: one layout a tile that suits all that touch it, views tied to the tiles
whose storage they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from typing import Any

from ..errors import LayoutError
from ..ir.expr import Buffer
from ..ir.node import walk
from ..ir.op import Choice, Op, Refusal
from ..ir.region import root
from ..ir.stmt import Alloc
from ..layout import SharedLayout, reshape_fragment, reshape_shared, same

Wishes = dict[Buffer, list[tuple[Op, tuple[Any, ...]]]]


def views_in(body: Any) -> tuple[Buffer, ...]:
    """The buffers that name the storage of another one; LayoutError for registers seen as another dtype."""
    found = tuple(n.buffer for n in walk(body) if isinstance(n, Alloc) and root(n.buffer) is not n.buffer)
    for view in found:
        base = root(view)
        packed = view.dtype.is_packed or base.dtype.is_packed
        if (view.space not in ("shared", "global") or packed) and view.dtype is not base.dtype:
            raise LayoutError(
                f"`{view.name}` sees {base.dtype} elements of `{base.name}` as {view.dtype}",
                rule="only tensors and shared tiles of whole bytes are seen as another dtype",
                fix="use T.reinterpret on the elements",
                loc=view.loc,
            )
    return found


def tie(views: Sequence[Buffer], known: dict[Buffer, Any]) -> bool:
    """Layouts of views from what they name, and of fragments from their views; True when there are new ones."""
    new = False
    for view in views:
        base = root(view)
        if base in known and view not in known:
            known[view] = _seen(known[base], base, view)
            new = True
        elif view.space == "fragment" and view in known and base not in known:
            known[base] = reshape_fragment(known[view], tuple(base.shape))
            new = True
        elif view.space == "fragment" and view in known:
            _hold_together(view, base, known)
    return new


def _hold_together(view: Buffer, base: Buffer, known: Mapping[Buffer, Any]) -> None:
    if not same(known[view], reshape_fragment(known[base], tuple(view.shape))):
        raise LayoutError(
            f"`{view.name}` and `{base.name}` are needed in layouts that are not views of one another",
            rule="a view has the storage of the tile that it names",
            fix="copy one of them to a tile of its own",
            loc=view.loc,
        )


def _seen(layout: Any, base: Buffer, view: Buffer) -> Any:
    if view.space == "fragment":
        return reshape_fragment(layout, tuple(view.shape))
    return reshape_shared(layout, base.dtype.bytes, tuple(view.shape), view.dtype.bytes)


def agree(ops: Sequence[Op], choices: Mapping[Op, Choice], known: Mapping[Buffer, Any]) -> dict[Op, Choice]:
    """The choices without implementations for which some tile would have no layout."""
    made = dict(choices)
    while True:
        try:
            shared_layouts(ops, made, dict(known))
            return made
        except Disagreement as clash:
            op = next((op for op in reversed(clash.ops) if len(made[op].impls) > 1), None)
            if op is None:
                raise clash.error from None
            first, *rest = made[op].impls
            refusal = Refusal(first.name, f"no layout of `{clash.buffer.name}` would suit all that touch it")
            made[op] = changed(made[op], impls=tuple(rest), refused=(*made[op].refused, refusal))


class Disagreement(Exception):
    """Operations that need one tile in different layouts."""

    def __init__(self, buffer: Buffer, ops: list[Op], names: str) -> None:
        super().__init__(names)
        self.buffer, self.ops = buffer, ops
        self.error = LayoutError(
            f"no layout of `{buffer.name}` suits {names}",
            rule="one shared tile has one layout",
            fix="copy it to a second tile for one of them, or drop the annotation",
            loc=ops[-1].loc,
        )


def shared_layouts(ops: Sequence[Op], choices: Mapping[Op, Choice], known: dict[Buffer, Any]) -> None:
    """The first layout of the first op's preference that all others accept too, for each tile that is asked for."""
    wishes: Wishes = {}
    for op in ops:
        for buffer, wanted in choices[op].impls[0].layouts.items():
            if buffer.space == "shared":
                wishes.setdefault(buffer, []).append((op, wanted))
    for buffer, lists in sorted(wishes.items(), key=lambda w: root(w[0]) is not w[0]):
        candidates = [known[buffer]] if buffer in known else _candidates(buffer, lists[0][1], known)
        fitting = [c for c in candidates if all(any(c == w for w in wanted) for _, wanted in lists)]
        if not fitting:
            names = " and ".join(f"{op.name} ({choices[op].impls[0].name})" for op, _ in lists)
            raise Disagreement(buffer, [op for op, _ in lists], names)
        known[buffer] = fitting[0]


def _candidates(buffer: Buffer, preferred: Sequence[Any], known: dict[Buffer, Any]) -> list[Any]:
    base = root(buffer)
    if base is buffer:
        return list(preferred)
    if base not in known:
        known[base] = SharedLayout.row_major(tuple(base.shape))
    return [_seen(known[base], base, buffer)]
