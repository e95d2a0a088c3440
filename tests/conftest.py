"""The rings: tests marked `gpu` or `browser` skip with the reason where the machine has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tileworkbench import browser
from tileworkbench.target.detect import detect

GOLDEN = Path(__file__).parent / "golden"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = {name: [item for item in items if item.get_closest_marker(name)] for name in ("gpu", "browser")}
    for item in marked["browser"]:
        item.add_marker(pytest.mark.xdist_group("browser"))
    if marked["gpu"] and not any(device.driver for device in detect()):
        for item in marked["gpu"]:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
    if marked["browser"] and not browser.find_browser():
        for item in marked["browser"]:
            item.add_marker(pytest.mark.skip(reason=f"no browser: {browser.FIX}"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` compares with tests/golden/<name>; with --update-golden it writes the file."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        else:
            assert text == path.read_text(encoding="utf-8"), f"{name} changed; say in the commit which pass did and why"

    return compare
