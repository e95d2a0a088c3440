"""Finds a Chromium or Chrome on this machine."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
# Looked at by absolute path too: services and fresh homes often have a PATH without them.
PLACES = (
    "/usr/bin/chromium",
    "/usr/lib/chromium/chromium",
    "/usr/bin/google-chrome",
    "/opt/google/chrome/chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
)
PLAYWRIGHT_CACHES = {"Darwin": "Library/Caches/ms-playwright", "Windows": "AppData/Local/ms-playwright"}
PLAYWRIGHT_FILES = (
    "chromium-*/chrome-*/chrome",
    "chromium-*/chrome-*/chrome.exe",
    "chromium-*/*/Chromium.app/Contents/MacOS/Chromium",
)
FIX = "install Chromium or Chrome (Debian: apt-get install chromium), or run: python -m playwright install chromium"


def find_browser() -> str | None:
    """Path of a Chromium or Chrome: on PATH, at a usual place, or fetched by Playwright."""
    on_path = next((path for name in NAMES if (path := shutil.which(name))), None)
    usual = next((path for path in PLACES if os.access(path, os.X_OK)), None)
    return on_path or usual or next(map(str, fetched()), None)


def fetched() -> list[Path]:
    """What Playwright has fetched, newest first."""
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    cache = Path(named) if named else Path.home() / PLAYWRIGHT_CACHES.get(platform.system(), ".cache/ms-playwright")
    return [path for pattern in PLAYWRIGHT_FILES for path in sorted(cache.glob(pattern), reverse=True)]
