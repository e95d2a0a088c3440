"""The command: what it opens, copies, refuses and reports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tileworkbench import cli, doctor
from tileworkbench.runtime.cache import Stats


def test_doctor_prints_a_line_for_each_finding_and_a_fix_for_what_is_missing(capsys: Any) -> None:
    assert cli.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    findings = doctor.examine()
    heads = [line for line in lines if line.startswith("[")]
    assert [line[5:].split("  ")[0] for line in heads] == [finding.name for finding in findings]
    assert len(lines) - len(heads) == sum(finding.state != "ok" for finding in findings)
    assert all(finding.found for finding in findings)


def test_what_is_missing_has_a_use_and_a_fix() -> None:
    found = doctor.package("nothing", "nobody", "lab", "no-such-distribution")
    assert found.state == "missing"
    assert found.fix.startswith(sys.executable) and found.fix.endswith("[lab]'")
    assert "for nobody; fix: " in doctor.text((found,))


def test_lab_opens_the_folder_that_is_there(tmp_path: Path) -> None:
    assert cli.notebooks(tmp_path) == tmp_path


def test_lab_copies_the_packaged_notebooks_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = tmp_path / "package" / "_notebooks"
    packaged.mkdir(parents=True)
    (packaged / "01.ipynb").write_text("{}")
    monkeypatch.setattr(cli, "PACKAGE", tmp_path / "package")
    target = tmp_path / "mine"
    assert cli.notebooks(target) == target
    (target / "01.ipynb").write_text("my work")
    cli.notebooks(target)
    assert (target / "01.ipynb").read_text() == "my work"


def test_lab_refuses_a_file_and_an_empty_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(cli, "PACKAGE", tmp_path)
    monkeypatch.setattr(cli, "CHECKOUT", tmp_path)
    monkeypatch.setattr(doctor, "has", lambda name: True)
    (tmp_path / "file").touch()
    for name in ("file", "absent"):
        assert cli.main(["lab", str(tmp_path / name)]) == 2
        assert "tileworkbench lab DIR" in capsys.readouterr().err


def test_lab_without_jupyterlab_names_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(doctor, "has", lambda name: False)
    assert cli.main(["lab"]) == 2
    assert "pip install" in capsys.readouterr().err


def test_lab_weakens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(doctor, "has", lambda name: True)
    monkeypatch.setattr(
        cli.subprocess, "run", lambda command: ran.append(command) or type("Done", (), {"returncode": 5})
    )
    assert cli.main(["lab", str(tmp_path)]) == 5
    assert ran == [[sys.executable, "-m", "jupyterlab", str(tmp_path)]]


def test_cache_says_where_and_how_much_and_clears(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    class Cache:
        def stats(self) -> Stats:
            return Stats(Path("there"), entries=3, bytes=5 << 20, limit=1 << 30)

        def clear(self) -> int:
            return 3

    monkeypatch.setattr(cli, "default", Cache)
    assert cli.main(["cache"]) == 0
    assert capsys.readouterr().out == "3 builds, 5.0 of 1024 MiB, in there\n"
    assert cli.main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == "3 builds removed from there\n"


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["cache", "wrong"]])
def test_unknown_commands_end_with_usage(arguments: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage: tileworkbench" in capsys.readouterr().err
