"""A Chromium found by path, pages that notice errors and requests, and one JupyterLab for all tests of this room."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tileworkbench import browser, lab_extension

READY = 60.0  # seconds within which JupyterLab must answer


@dataclass
class Watched:
    """A page with what went wrong on it: errors of its console, and requests that left this machine."""

    page: Any
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def saw_request(self, url: str) -> None:
        if not url.startswith(("file:", "data:", "blob:", "about:", "http://127.0.0.1:", "ws://127.0.0.1:")):
            self.outside.append(url)

    def clean(self) -> None:
        """Asserts that nothing ran, left or failed."""
        assert self.page.evaluate("window.pwned") is None
        assert self.outside == []
        assert self.errors == []


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        # Without a sandbox of its own Chromium starts as root too, as in most CI containers.
        running = driver.chromium.launch(executable_path=browser.find_browser(), args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Any]:
    contexts = []

    def opened(**options: Any) -> Watched:
        context = chromium.new_context(viewport={"width": 1200, "height": 1000}, **options)
        contexts.append(context)
        watched = Watched(context.new_page())
        watched.page.set_default_timeout(20_000)
        watched.page.on("console", lambda said: watched.errors.append(said.text) if said.type == "error" else None)
        watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
        watched.page.on("request", lambda request: watched.saw_request(request.url))
        return watched

    yield opened
    for context in contexts:
        context.close()


@dataclass
class Lab:
    """A running JupyterLab; `folder` is its root."""

    folder: Path
    port: int
    token: str

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}"

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url(path), timeout=5) as answer:
            return str(answer.read().decode())


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    pytest.importorskip("jupyterlab")
    folder = lab_extension.installed()
    if folder is None or not lab_extension.fresh(folder):
        reason = "the JupyterLab extension is not installed from these sources: pip install -e '.[test]'"
        if os.environ.get("TILEWORKBENCH_LABEXTENSION") == "require":
            pytest.fail(reason)
        pytest.skip(reason)
    home = tmp_path_factory.mktemp("lab")
    running = Lab(home / "root", free_port(), secrets.token_hex(16))
    running.folder.mkdir()
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "IPYTHONDIR")
    places = {name: str(home / name) for name in (*names, "JUPYTERLAB_WORKSPACES_DIR")}
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        f"--port={running.port}",
        "--ip=127.0.0.1",
    ]
    command += ["--ServerApp.port_retries=0", f"--ServerApp.root_dir={running.folder}"]
    command += [f"--IdentityProvider.token={running.token}", "--LabApp.news_url=None"]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            command, env={**os.environ, **places}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        wait_for(running, server, home / "log")
        yield running
    finally:
        server.terminate()
        server.wait(20)


def wait_for(running: Lab, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + READY
    while time.monotonic() < end and server.poll() is None:
        try:
            running.get("api")
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")
