"""A macro's names are its own: what it binds or reads says nothing about names of its caller that are spelled alike."""

from __future__ import annotations

import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError

from .cells import body

WORD = 5


@T.macro
def store(buffer):
    x = 7
    buffer[x] = WORD


@T.macro
def looped(buffer):
    for i in T.serial(2):
        x = i + 1
        buffer[x] = WORD


@pytest.mark.parametrize("macro", [store, looped])
def test_a_branch_that_calls_it_leaves_the_callers_names_alone(macro):
    lines = body("x = 3\nif n > 2:\n    put(I)\nelse:\n    I[x] = 1\nI[x] = 2", put=macro)
    assert lines[-1] == "I[3] = 2" and "    I[3] = 1" in lines


@pytest.mark.parametrize("macro", [store, looped])
def test_a_rebinding_after_the_call_is_seen(macro):
    """The call must not stand for the caller's own binding of the name."""
    with pytest.raises(LanguageError, match="`x` has no single value here"):
        body("x = 3\nfor i in T.serial(n):\n    put(I)\n    x = 4\nI[x] = 2", put=macro)


def test_what_it_reads_of_its_own_surroundings_is_not_the_callers():
    assert "    I[2] = 2" in body(
        "WORD = 1\nfor i in T.serial(4):\n    put(I)\n    WORD = 2\n    I[WORD] = 2", put=store
    )


def test_its_own_branches_still_count():
    @T.macro
    def unsure(buffer, n):
        x = 1
        if n > 2:
            x = 2
        buffer[x] = 3

    with pytest.raises(LanguageError, match="`x` has no single value here"):
        body("if n > 1:\n    put(I, n)", put=unsure)
