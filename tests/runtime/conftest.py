"""The driver and array libraries of tests without a GPU."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.runtime.fakes import FakeDriver, fake_cupy, fake_torch


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = fake_cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module
