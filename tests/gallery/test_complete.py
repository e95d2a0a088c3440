"""Every core script of the conformance list has its algorithm in the gallery."""

from __future__ import annotations

from collections import Counter

from tests.conformance.run import LIST
from tests.gallery.registry import ENTRIES

CORE = {line.split()[1] for line in LIST.read_text(encoding="utf-8").splitlines() if line.startswith("core ")}


def test_each_core_script_has_an_entry() -> None:
    shown = {script for entry in ENTRIES for script in entry.scripts}
    assert CORE - shown == set()
    assert shown - CORE == set(), "entries name scripts of the core list"


def test_entries_have_names_of_their_own() -> None:
    assert [name for name, times in Counter(entry.name for entry in ENTRIES).items() if times > 1] == []


def test_escape_hatches_are_the_exception() -> None:
    """What the CPU target cannot run has a sibling that it can, or takes addresses of a card's memory."""
    simulated = {script for entry in ENTRIES if entry.simulated for script in entry.scripts}
    assert CORE - simulated == {"grouped_gemm/example_grouped_gemm_fwd_ptr.py"}
