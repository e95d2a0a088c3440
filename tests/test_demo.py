"""The main job: it compiles, runs, checks, says what it found, and writes one page."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

from tileworkbench import demo
from tileworkbench.errors import MissingDependency

ROOT = Path(__file__).resolve().parent.parent


def test_the_summary_and_the_report(tmp_path):
    out, page = io.StringIO(), tmp_path / "report.html"
    assert demo.main(page, out) == 0
    text = out.getvalue()
    figures = ("registers", "shared memory", "occupancy", "roofline", "time to build", "maximum error")
    for word in ("→ tma", "→ wgmma", "not cp.async", "equal to the reference", "sm_90a", *figures):
        assert word in text, word
    html = page.read_text(encoding="utf-8")
    assert html.count("<strong>add(A, B, C)</strong>") == 1 and "gemm_relu(A, B, C)" in html
    assert "http" not in html.replace("http-equiv", "")
    assert len(html) < 2_000_000


def test_a_missing_compiler_is_named_and_the_kernels_are_still_checked(tmp_path, monkeypatch):
    def gone(*_):
        raise MissingDependency("NVRTC is not installed", fix="pip install 'tileworkbench[nvrtc]'")

    monkeypatch.setattr("tileworkbench.runtime.build.build", gone)
    out = io.StringIO()
    assert demo.main(tmp_path / "report.html", out) == 0
    text = out.getvalue()
    assert "NVRTC is not installed" in text and "pip install" in text
    assert "equal to the reference" in text and "→ wgmma" in text


def test_a_wrong_kernel_fails_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "KERNELS", ((demo.tutorial.add, lambda a, b: a - b),))
    out = io.StringIO()
    assert demo.main(tmp_path / "report.html", out) == 1
    assert "wrong" in out.getvalue()


def test_importing_the_package_is_quick_to_start_with():
    """Nothing but the package itself, its options and the name of the machines is imported with it."""
    code = "import sys, tileworkbench; print(sorted(m for m in sys.modules if m.startswith('tileworkbench')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == str(
        ["tileworkbench", *(f"tileworkbench.{name}" for name in ("errors", "knobs", "options", "places", "simulate"))]
    ).split()  # fmt: skip
