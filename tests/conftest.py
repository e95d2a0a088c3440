"""The rings: tests marked `gpu` or `browser` skip with the reason where the machine has none."""

from __future__ import annotations

import pytest

from tileworkbench import browser
from tileworkbench.target.detect import detect


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = {name: [item for item in items if item.get_closest_marker(name)] for name in ("gpu", "browser")}
    if marked["gpu"] and not any(device.driver for device in detect()):
        for item in marked["gpu"]:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
    if marked["browser"] and not browser.find_browser():
        for item in marked["browser"]:
            item.add_marker(pytest.mark.skip(reason=f"no browser: {browser.FIX}"))
