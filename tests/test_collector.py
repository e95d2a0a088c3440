"""The collector is held back for a block, in every thread, and comes back as it was."""

from __future__ import annotations

import gc
import threading

import pytest

from tileworkbench.collector import held_back


def test_blocks_nest_and_end():
    assert gc.isenabled()
    with held_back():
        with held_back():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_ends_the_block():
    with pytest.raises(KeyError), held_back():
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with held_back():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_last_of_several_threads_brings_it_back():
    inside, leave = threading.Event(), threading.Event()

    def work():
        with held_back():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(10)
    with held_back():
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join(10)
    assert gc.isenabled()
