"""Reads ptxas' verbose log: registers, spills, stack, shared memory and warnings of one entry."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
_CODE = re.compile(r"\bC75\d\d\b")
_WARNING = re.compile(r"\bwarning\b", re.IGNORECASE)
_PCH_NOISE = re.compile(
    r"precompiled header file|Compile time = |Remark: The warnings can be suppressed|Warning #629-D"
)


@dataclass(frozen=True)
class Usage:
    registers: int | None = None
    spills: int | None = None
    stack: int | None = None
    shared: int | None = None
    barriers: int | None = None


def usage(log: str, entry: str) -> Usage:
    """Figures of `entry`; all None when the log does not speak of it. A kernel without shared memory has shared = 0."""
    lines = log.splitlines()
    starts = [i for i, line in enumerate(lines) if (m := _ENTRY.search(line)) and m[1] == entry]
    if not starts:
        return Usage()
    part = _until_next_entry(lines[starts[0] + 1 :])
    frame, used, shared = _FRAME.search(part), _USED.search(part), _SHARED.search(part)
    return Usage(
        registers=int(used[1]) if used else None,
        spills=int(frame[2]) + int(frame[3]) if frame else None,
        stack=int(frame[1]) if frame else None,
        shared=int(shared[1]) if shared else (0 if used else None),
        barriers=int(used[2] or 0) if used else None,
    )


def _until_next_entry(lines: list[str]) -> str:
    taken = []
    for line in lines:
        if _ENTRY.search(line):
            break
        taken.append(line)
    return "\n".join(taken)


def warnings(log: str) -> tuple[str, ...]:
    """Each warning of the log once, in order. Notes with a C75xx code count whatever their severity word says."""
    found = (line.strip() for line in log.splitlines() if _WARNING.search(line) or _CODE.search(line))
    return tuple(dict.fromkeys(line for line in found if not _PCH_NOISE.search(line)))


def without_noise(log: str) -> str:
    """The log without lines about precompiled headers, which speak of our own files, and without clock times."""
    kept = [line for line in log.splitlines() if not _PCH_NOISE.search(line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
