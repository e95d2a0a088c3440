"""Differences of two kernel texts, line by line: runs of equal, deleted and inserted lines, and which changed lines
come from the same statement of the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ..errors import Loc
from .text import Line


@dataclass(frozen=True, slots=True)
class Run:
    """Lines before[start:stop] and after[start:stop] of one kind: equal (both), delete (before only), insert (after
    only). Line numbers count from 0."""

    kind: str
    before: range
    after: range


def diff(before: Sequence[Line], after: Sequence[Line]) -> list[Run]:
    """The runs in order. Indentation does not count: a statement that a role now surrounds is still the same."""
    old, new = [line.text for line in before], [line.text for line in after]
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    runs: list[Run] = []
    _add(runs, "equal", range(head), range(head))
    ends = len(old) - tail, len(new) - tail
    middle = SequenceMatcher(None, old[head : ends[0]], new[head : ends[1]], autojunk=False)
    for tag, i, i_end, j, j_end in middle.get_opcodes():
        gone, come = range(head + i, head + i_end), range(head + j, head + j_end)
        if tag == "equal":
            _add(runs, "equal", gone, come)
        else:
            _add(runs, "delete", gone, range(come.start, come.start))
            _add(runs, "insert", range(gone.stop, gone.stop), come)
    _add(runs, "equal", range(ends[0], len(old)), range(ends[1], len(new)))
    return runs


def successors(before: Sequence[Line], after: Sequence[Line], runs: Sequence[Run]) -> dict[int, int]:
    """For each line that stayed or that was rewritten, its number before and after. A rewritten line is a deleted one
    with an inserted one of the same place in the user's text; several of one place are paired in order."""
    pairs: dict[int, int] = {}
    waiting: dict[Loc, list[int]] = {}
    for run in runs:
        if run.kind == "equal":
            pairs.update(zip(run.before, run.after, strict=True))
        elif run.kind == "insert":
            for j in run.after:
                place = after[j].loc
                if place is not None and after[j].node is not None:
                    waiting.setdefault(place, []).append(j)
    for run in runs:
        if run.kind == "delete":
            for i in run.before:
                place = before[i].loc
                found = waiting.get(place) if place is not None and before[i].node is not None else None
                if found:
                    pairs[i] = found.pop(0)
    return pairs


def unified(before: Sequence[Line], after: Sequence[Line], context: int = 2) -> str:
    """The difference as text: lines that went are marked -, lines that came +, with `context` equal lines around and
    `...` for what is left out. Empty when nothing differs."""
    runs = diff(before, after)
    if all(run.kind == "equal" for run in runs):
        return ""
    shown: list[str] = []
    for number, run in enumerate(runs):
        if run.kind == "delete":
            shown += [f"- {before[i]}" for i in run.before]
        elif run.kind == "insert":
            shown += [f"+ {after[j]}" for j in run.after]
        else:
            shown += _context([str(after[j]) for j in run.after], context, number == 0, number == len(runs) - 1)
    return "\n".join(shown) + "\n"


def _context(lines: list[str], context: int, first: bool, last: bool) -> list[str]:
    """The edges of an equal run that stand beside a difference."""
    head, tail = (0 if first else context), (0 if last else context)
    if len(lines) <= head + tail + 1:
        return [f"  {line}" for line in lines]
    return [
        *(f"  {line}" for line in lines[:head]),
        "  ...",
        *(f"  {line}" for line in lines[len(lines) - tail :]),
    ]


def _shared(old: list[str], new: list[str]) -> int:
    """How many lines from the start are the same: most passes change little, and this is cheap."""
    count = 0
    for a, b in zip(old, new, strict=False):
        if a != b:
            break
        count += 1
    return count


def _add(runs: list[Run], kind: str, before: range, after: range) -> None:
    if not before and not after:
        return
    last = runs[-1] if runs else None
    if last is not None and last.kind == kind == "equal":
        runs[-1] = Run(kind, range(last.before.start, before.stop), range(last.after.start, after.stop))
    else:
        runs.append(Run(kind, before, after))
