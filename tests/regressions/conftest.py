"""`machine`: every test that asks for it runs on the tile machine, the thread machine and a card."""

from __future__ import annotations

import pytest

from .machines import MACHINES, Machine


@pytest.fixture(params=[pytest.param(n, marks=pytest.mark.gpu) if n == "card" else n for n in MACHINES])
def machine(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[request.param]
